vcl 4.1;

import std;

backend stable { .host = "192.0.2.151"; .port = "8080"; }
backend canary { .host = "192.0.2.152"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Cookie ~ "(^|; )version=canary(;|$)") {
        set req.http.X-Version = "canary";
    } elsif (req.http.Cookie ~ "(^|; )version=stable(;|$)") {
        set req.http.X-Version = "stable";
    } elsif (std.random(0, 100) < 5.0) {
        set req.http.X-Version = "canary";
        set req.http.X-Set-Version = "1";
    } else {
        set req.http.X-Version = "stable";
        set req.http.X-Set-Version = "1";
    }

    if (req.http.X-Version == "canary" && std.healthy(canary)) {
        set req.backend_hint = canary;
    } else {
        set req.backend_hint = stable;
    }
}

sub vcl_hash {
    hash_data(req.http.X-Version);
}

sub vcl_deliver {
    if (req.http.X-Set-Version) {
        set resp.http.Set-Cookie = "version=" + req.http.X-Version + "; Path=/; Max-Age=" + std.integer(duration=1w);
    }
}
