vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    if (beresp.ttl > 3600) {  # <- refused
        set beresp.ttl = 1h;
    }
}
