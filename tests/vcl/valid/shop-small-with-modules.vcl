vcl 4.0;

import std;
import header;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.url ~ "^/modules/(cart|payment|wishlist)/" || req.url ~ "controller=(order|identity|history)") {
        return (pass);
    }
    if (req.http.cookie) {
        if (req.http.cookie ~ "shop-[0-9a-f]{24}") {
            set req.http.X-Cookie-Kept = regsub(req.http.cookie, "^.*(shop-[0-9a-f]{24}=[^;]+).*$", "\1");
            set req.http.cookie = req.http.X-Cookie-Kept;
            unset req.http.X-Cookie-Kept;
        } else {
            unset req.http.cookie;
        }
    }
}

sub vcl_backend_response {
    if (beresp.http.Set-Cookie) {
        # The statistics cookie may go; the one of the session may not.
        header.remove(beresp.http.Set-Cookie, "^stats=");
    }
    if (beresp.http.Set-Cookie) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    set beresp.ttl = 15m;
}
