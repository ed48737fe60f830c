# decision: request-set-in-fetch vcl_backend_response cannot change the client's request: a field of the response carries the mark, and is stored with it
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    unset req.http.X-Why;
    if (req.method == "POST") { return (pass); }
}

sub vcl_backend_response {
    # vcl_deliver shows it to the developers
    if (beresp.http.Set-Cookie) {
        set beresp.http.X-Why = "cookie";
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    if (bereq.http.Host ~ "^static\.") {
        unset beresp.http.X-Why;
        set beresp.ttl = 1d;
    }
}
