vcl 4.1;

# Needs `std.rfc_ttl`.

import std;

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_backend_response {
    if (beresp.http.X-Rewrite-Cache-Control) {
        set beresp.http.Cache-Control = beresp.http.X-Rewrite-Cache-Control;
        std.rfc_ttl();
    }
}
