vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    set req.proto = "HTTP/1.1";  # <- refused
}
