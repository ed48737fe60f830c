vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub serve_at_once {
    if (req.url ~ "^/static/") {
        return (deliver);  # <- refused
    }
}

sub vcl_recv {
    call serve_at_once;
}
