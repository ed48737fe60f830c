vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (req.url == "/ping") {
        synthetic("pong");  # <- refused
    }
}
