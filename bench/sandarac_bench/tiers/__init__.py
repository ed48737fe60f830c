"""The shared tier beside a bare relay, nginx and nodes without it, with real memcached servers.

`cli` reads the command line; `stack` starts the servers and plays requests; `hits`, `latency`, `fleet` and `hung` hold the
lines.
"""
