vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.method != "GET") { return (pass); }
    return (hash);
}

sub vcl_backend_response {
    if (beresp.status == 500 || beresp.status == 502 || beresp.status == 503) {
        if (bereq.retries < 2) {
            return (retry);
        }
        return (error(503, "The backend is out of order"));
    }
    if (beresp.ttl <= 0s) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    return (deliver);
}
