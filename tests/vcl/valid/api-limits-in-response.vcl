vcl 4.1;

import std;
import vsthrottle from "libvmod_vsthrottle.so";

backend default { .host = "192.0.2.216"; .port = "8080"; }

sub vcl_recv {
    # The token of a request that fails for reasons of ours is given back.
    if (vsthrottle.is_denied(client.identity, 30, 30s)) {
        return (synth(429));
    }
}

sub vcl_deliver {
    if (resp.status >= 500) {
        vsthrottle.return_token(client.identity, 30, 30s);
    }
    set resp.http."RateLimit.Remaining" = vsthrottle.remaining(client.identity, 30, 30s);
    if (resp.http."RateLimit.Remaining" == "0") {
        set resp.http.Retry-After = std.integer(duration = vsthrottle.blocked(client.identity, 30, 30s, 0s), fallback = 30);
    }
}
