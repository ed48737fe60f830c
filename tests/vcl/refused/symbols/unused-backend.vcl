vcl 4.1;

backend default { .host = "192.0.2.1"; }
backend spare { .host = "192.0.2.2"; }  # <- refused

sub vcl_recv {
    set req.backend_hint = default;
}
