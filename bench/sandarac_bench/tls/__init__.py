"""TLS to clients beside a bare rustls responder, nginx and HAProxy.

`cli` reads the command line; `stack` starts the servers and the clients; `work`, `idle` and `attack` hold the lines.
"""
