# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.request != "GET") { return (pass); }
    return (lookup);
}

sub vcl_fetch {
    if (beresp.status == 500 || beresp.status == 502 || beresp.status == 503) {
        if (req.restarts < 2) {
            restart;
        }
        error 503 "The backend is out of order";
    }
    if (!beresp.cacheable) { return (pass); }
    return (deliver);
}
