vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_fetch {
    if (bereq.retries == 0) {
        return (retry);  # <- refused
    }
}
