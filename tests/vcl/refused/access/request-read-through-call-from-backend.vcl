vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub short_for_api {
    if (req.url ~ "^/api/") {  # <- refused
        set beresp.ttl = 1s;
    }
}

sub vcl_backend_response {
    call short_for_api;
}
