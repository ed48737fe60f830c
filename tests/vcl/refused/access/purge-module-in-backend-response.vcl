# varnishd: accepts
vcl 4.1;

import purge;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    if (beresp.http.X-Purge) {
        set beresp.http.X-Count = purge.soft(0s);  # <- refused
    }
}
