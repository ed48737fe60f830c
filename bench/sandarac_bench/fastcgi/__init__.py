"""Pages of PHP through FastCGI: the CPU time of the proxy per request."""
