# varnishd: line 5
vcl 4.1;

backend default { .host = "192.0.2.1"; }
sub decode_again {
    if (req.url ~ "%25") {
        set req.url = regsub(req.url, "%25", "%");
        call decode_again;  # <- refused
    }
}

sub vcl_recv { call decode_again; }
