vcl 4.1;

import std;

# An API whose answers may be stale for a day if its servers fail.

probe default {
    .url = "/healthz";
    .expected_response = 204;
    .interval = 2s;
    .timeout = 1s;
    .window = 4;
    .threshold = 2;
}

backend api {
    .host = "192.0.2.205";
    .port = "8080";
    .connect_timeout = 700ms;
    .first_byte_timeout = 3s;
    .between_bytes_timeout = 1s;
}

acl trusted { "192.0.2.0"/24; "2001:db8:5::"/48; }

sub grace_of_request {
    if (std.healthy(req.backend_hint)) {
        set req.grace = 10s;
    } else {
        unset req.http.X-Fresh;
        set req.grace = 24h;
    }
    if (req.http.X-Fresh) {
        set req.ttl = 5s;
        if (req.ttl > req.grace) {
            set req.grace = 0s;
        }
    }
    # A caller of ours may ask for its own limit.
    if (client.ip ~ trusted && req.http.X-Max-Stale) {
        set req.grace = std.duration(req.http.X-Max-Stale, 10s);
        if (req.grace > 1w) {
            set req.grace = 1w;
        } elsif (req.grace < 0s) {
            set req.grace = 0s;
        }
    }
}

sub vcl_recv {
    call grace_of_request;
    if (req.method == "GET" || req.method == "HEAD") {
        unset req.http.Cookie;
        return (hash);
    }
    return (pass);
}

sub vcl_hit {
    if (obj.ttl > 0s) {
        set req.http.X-State = "fresh";
    } else {
        set req.http.X-State = "stale by " + (0s - obj.ttl);
    }
    if (obj.http.X-Valid-Until) {
        if (std.time(obj.http.X-Valid-Until, now + 1h) < now) {
            # Never stale beyond what the server has said.
            return (pass);
        }
    }
}

sub vcl_miss {
    set req.http.X-State = "none";
}

sub vcl_backend_fetch {
    if (bereq.is_bgfetch) {
        # Nobody waits for a refresh.
        set bereq.first_byte_timeout = 20s;
        set bereq.between_bytes_timeout = 20s;
    }
}

sub vcl_backend_response {
    set beresp.grace = 24h;
    if (beresp.status >= 500) {
        if (bereq.is_bgfetch) {
            # Keeps the old object where a refresh fails.
            return (abandon);
        }
        if (beresp.http.Retry-After) {
            set beresp.ttl = std.duration(beresp.http.Retry-After + "s", 1s);
        } else {
            set beresp.ttl = 1s;
        }
        set beresp.grace = 5s;
        return (deliver);
    }
    if (beresp.http.Cache-Control ~ "stale-if-error=\d+") {
        set beresp.grace = std.duration(
            regsub(beresp.http.Cache-Control, "^.*stale-if-error=(\d+).*$", "\1s"),
            beresp.grace);
    }
    if (beresp.http.X-Valid-For) {
        set beresp.http.X-Valid-Until = beresp.time + std.duration(beresp.http.X-Valid-For, 1d);
    }
}

sub vcl_backend_error {
    set beresp.status = 503;
    set beresp.http.Content-Type = "application/problem+json";
    set beresp.ttl = 500ms;
    set beresp.grace = 0s;
    set beresp.body = """{ "status": 503, "title": "Try again later", "xid": """ + {"""} + bereq.xid + {"""} + """ }
""";
    return (deliver);
}

sub vcl_deliver {
    set resp.http.X-State = req.http.X-State;
    if (resp.http.X-State ~ "^stale") {
        set resp.http.Warning = {"110 - "Response is Stale""};
    }
}
