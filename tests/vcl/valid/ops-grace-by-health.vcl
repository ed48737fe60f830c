vcl 4.0;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
    .probe = { .url = "/"; .timeout = 1s; .interval = 5s; }
}

sub vcl_backend_response {
    set beresp.ttl = 10s;
    set beresp.grace = 1h;
}

sub vcl_hit {
    if (obj.ttl >= 0s) {
        set req.http.X-Cache = "fresh";
    } elsif (std.healthy(req.backend_hint) && obj.ttl + 15s > 0s) {
        set req.http.X-Cache = "grace, limited";
    } elsif (!std.healthy(req.backend_hint) && obj.ttl + obj.grace > 0s) {
        set req.http.X-Cache = "grace, full";
    } else {
        set req.hash_always_miss = true;
        return (restart);
    }
    return (deliver);
}

sub vcl_deliver {
    set resp.http.X-Cache = req.http.X-Cache;
}
