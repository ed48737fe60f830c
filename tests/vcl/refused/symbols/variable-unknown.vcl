vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    set beresp.max_age = 1h;  # <- refused
}
