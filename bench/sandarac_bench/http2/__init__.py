"""HTTP/2 from clients beside nginx, HAProxy, h2o and nghttpx.

`cli` reads the command line; `stack` starts the servers and the clients; `work`, `idle` and `attack` hold the lines.
"""
