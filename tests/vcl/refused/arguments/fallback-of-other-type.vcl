vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    set beresp.ttl = std.duration(beresp.http.X-Ttl, 60);  # <- refused
}
