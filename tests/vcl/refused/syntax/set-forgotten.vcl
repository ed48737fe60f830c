vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    req.http.X-One = "1";  # <- refused
}
