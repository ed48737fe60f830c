vcl 4.1;

# Needs `beresp.transit_buffer`.

import std;

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_backend_response {
    if (beresp.uncacheable && std.bytes(beresp.http.Content-Length, 0B) > 1GB) {
        set beresp.transit_buffer = 2MB;
    }
}
