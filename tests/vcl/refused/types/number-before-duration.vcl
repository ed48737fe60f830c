vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    # A duration may be multiplied; a number may not be by one.
    set beresp.keep = 3 * 24h;  # <- refused
}
