vcl 4.1;

import std;
import vsthrottle as throttle;

backend api { .host = "192.0.2.200"; .port = "3000"; }

sub vcl_recv {
    if (!req.http.X-Api-Key) {
        return (synth(401, "A key is required"));
    }
    if (req.http.X-Api-Key !~ "^[A-Za-z0-9]{32}$") {
        return (synth(401, "This is no key"));
    }
    if (throttle.is_denied("key:" + req.http.X-Api-Key, 100, 1m)) {
        return (synth(429, "Too Many Requests"));
    }
    if (throttle.is_denied(key = "ip:" + client.ip, limit = 1000, period = 1h, block = 5m)) {
        std.syslog(13, "blocked: " + client.ip);
        return (synth(429, "Too Many Requests"));
    }
}

sub vcl_hash {
    hash_data(req.http.X-Api-Key);
}

sub vcl_deliver {
    set resp.http.RateLimit-Limit = 100;
    set resp.http.RateLimit-Remaining = throttle.remaining("key:" + req.http.X-Api-Key, 100, 1m);
}

sub vcl_synth {
    set resp.http.Content-Type = "application/problem+json";
    set resp.body = {"{"status": "} + resp.status + {", "title": ""} + resp.reason + """"}
""";
    return (deliver);
}
