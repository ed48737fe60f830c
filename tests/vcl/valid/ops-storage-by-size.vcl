vcl 4.1;

import std;

backend default { .host = "192.0.2.128"; .port = "80"; }

sub vcl_backend_response {
    if (std.bytes(beresp.http.Content-Length, 0B) > 10MB) {
        set beresp.storage = storage.Transient;
        set beresp.ttl = 1m;
    } elsif (storage.s0.free_space < 64MB) {
        set beresp.ttl /= 2;
    } elsif (storage.s0.used_space > 1GB && storage.s0.happy) {
        set beresp.ttl -= 10s;
    } else {
        set beresp.storage = storage.s0;
    }
}

sub vcl_recv {
    if (req.method == "PUT") {
        set req.storage = storage.Transient;
        if (std.cache_req_body(std.bytes(integer = 64 * 1024))) {
            set req.http.X-Kept = "1";
        }
    }
}
