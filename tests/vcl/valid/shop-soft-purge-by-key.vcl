vcl 4.1;

import std;
import xkey;

backend web1 { .host = "203.0.113.11"; }

acl ops { "203.0.113.0"/26; }

sub vcl_recv {
    if (req.method ~ "^(PURGE|SOFTPURGE)$") {
        if (std.ip(req.http.X-Real-IP, client.ip) !~ ops) {
            return (synth(403));
        }
        if (req.method == "SOFTPURGE") {
            set req.http.n = xkey.softpurge(req.http.key);
        } else {
            set req.http.n = xkey.purge(req.http.key);
        }
        if (req.http.n == "0") {
            return (synth(404, "No such key"));
        }
        return (synth(200, req.http.n + " objects"));
    }
}

sub vcl_backend_response {
    # Products say their number in a field of their own.
    if (beresp.http.X-Product) {
        set beresp.http.xkey = "product-" + beresp.http.X-Product;
        if (beresp.http.X-Category) {
            set beresp.http.xkey = beresp.http.xkey + " category-" + beresp.http.X-Category;
        }
    }
    set beresp.grace = 6h;
    set beresp.keep = 1d;
}
