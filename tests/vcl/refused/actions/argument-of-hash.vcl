vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    return (hash(req.url));  # <- refused
}
