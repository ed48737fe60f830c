vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_fetch {
    if (beresp.status == 503) {  # <- refused
        return (abandon);
    }
}
