vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_fetch {
    set req.http.X-Fetched = "1";  # <- refused
}
