# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    remove req.http.X-Why;
    if (req.request == "POST") { return (pass); }
}

sub vcl_fetch {
    # vcl_deliver shows it to the developers
    if (beresp.http.Set-Cookie) {
        set req.http.X-Why = "cookie";
        return (hit_for_pass);
    }
    if (req.http.Host ~ "^static\.") {
        remove req.http.X-Why;
        set beresp.ttl = 1d;
    }
}

sub vcl_deliver {
    if (req.http.X-Why) {
        set resp.http.X-Why = req.http.X-Why;
    }
}
