vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
    .probe = { .url = "/alive"; .interval = 2s; .timeout = 1s; .window = 5; .threshold = 3; }
}

sub vcl_recv {
    if (! std.healthy(req.backend_hint)) {
        set req.grace = 12h;
        unset req.http.Cookie;
    } else {
        set req.grace = 20s;
    }
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
}

sub vcl_backend_response {
    set beresp.grace = 12h;
    if (beresp.status >= 500 && std.healthy(bereq.backend)) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
}

sub vcl_deliver {
    if (!std.healthy(req.backend_hint)) {
        set resp.http.Warning = {"110 - "stale""};
    }
}
