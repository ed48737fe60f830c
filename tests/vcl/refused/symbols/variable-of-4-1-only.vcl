vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    set req.http.X-Socket = local.socket;  # <- refused
}
