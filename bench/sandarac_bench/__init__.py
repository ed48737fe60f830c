"""The comparison of Sandarac with its peers.

`cli` reads the command line and runs the rows; `closed_loop`, `application` and `resident` hold the three kinds of
row; `peers` knows how each server is started; `verdict`, `report` and `chart` judge and show what was measured.
"""
