vcl 4.1;

# From the time of 2.0: obj is the answer of the backend.
backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_response {
    if (beresp.http.Set-Cookie) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    if (beresp.http.Pragma ~ "no-cache" || beresp.http.Cache-Control ~ "private") {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    if (beresp.ttl <= 0s) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    if (bereq.url ~ "\.rss$") {
        set beresp.ttl = 5m;
    }
    set beresp.grace = 30s;
    unset beresp.http.X-Powered-By;
    return (deliver);
}

sub vcl_recv {
    set req.grace = 30s;
    if (req.method == "GET" && req.http.Authorization) { return (pass); }
}
