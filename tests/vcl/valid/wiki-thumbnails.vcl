vcl 4.1;

import std;

backend files  { .host = "192.0.2.16"; .port = "80"; }
backend scaler { .host = "192.0.2.17"; .port = "80"; .max_connections = 16; .first_byte_timeout = 1m; }

sub vcl_recv {
    if (req.url ~ "^/images/thumb/") {
        unset req.http.Cookie;
        # 120px, 0120px and 120.0px are one size.
        set req.url = regsub(req.url, "/0*(\d+)(\.0+)?px-", "/\1px-");
        if (std.integer(regsub(req.url, "^.*/(\d+)px-.*$", "\1"), 0) > 4096) {
            return (synth(400, "Too wide"));
        }
    }
}

sub vcl_miss {
    if (req.url ~ "^/images/thumb/") {
        set req.backend_hint = scaler;
    } else {
        set req.backend_hint = files;
    }
}

sub vcl_backend_response {
    if (bereq.backend == scaler && beresp.status == 429) {
        set beresp.ttl = std.duration(beresp.http.Retry-After + "s", 10s);
        set beresp.grace = 0s;
    }
}
