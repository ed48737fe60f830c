vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    if (beresp.do_esi == "true") {  # <- refused
        set beresp.do_gzip = true;
    }
}
