vcl 4.1;

# Needs `req.max_age`, and `unset` of `req.grace` and `req.ttl`.

import std;

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Cache-Control ~ "max-age=\d+") {
        set req.max_age = std.duration(regsub(req.http.Cache-Control, "^.*max-age=(\d+).*$", "\1s"), 1m);
        set req.grace = 0s;
    } else {
        unset req.max_age;
        unset req.grace;
        unset req.ttl;
    }
}
