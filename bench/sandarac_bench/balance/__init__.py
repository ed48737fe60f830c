"""The experiment with the balancer: real workers, a real database, and one log played against every algorithm.

`workload` makes database and log, `application` is what the workers run, `stack` starts workers and balancer, `cases`
says what is compared, `cli` runs it, and `report` holds it against the bars.
"""
