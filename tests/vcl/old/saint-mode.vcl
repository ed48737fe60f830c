# vcl 3
backend default {
    .host = "10.20.0.1";
    .port = "80";
}

sub vcl_recv {
    if (req.request != "GET" && req.request != "HEAD") {
        return (pass);
    }
    return (lookup);
}

sub vcl_fetch {
    # This URL is not asked for again for ten seconds.
    if (beresp.status == 500) {
        set beresp.saintmode = 10s;
        return (restart);
    }
    set beresp.grace = 5m;
}
