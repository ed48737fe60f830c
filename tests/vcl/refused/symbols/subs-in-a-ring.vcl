# varnishd: line 6
vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub first {
    call second;
}

sub second {
    if (req.url ~ "/") {
        call first;  # <- refused
    }
}

sub vcl_recv { call first; }
