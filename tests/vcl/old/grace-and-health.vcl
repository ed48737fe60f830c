# vcl 3
backend default {
    .host = "127.0.0.1";
    .port = "8080";
    .probe = { .url = "/alive"; .interval = 2s; .timeout = 1s; .window = 5; .threshold = 3; }
}

sub vcl_recv {
    if (! req.backend.healthy) {
        set req.grace = 12h;
        remove req.http.Cookie;
    } else {
        set req.grace = 20s;
    }
    if (req.request != "GET" && req.request != "HEAD") { return (pass); }
}

sub vcl_fetch {
    set beresp.grace = 12h;
    if (beresp.status >= 500 && req.backend.healthy) {
        set beresp.ttl = 0s;
        return (hit_for_pass);
    }
}

sub vcl_deliver {
    if (!req.backend.healthy) {
        set resp.http.Warning = {"110 - "stale""};
    }
}
