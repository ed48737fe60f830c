# varnishd: accepts
vcl 4.1;

import saintmode;

backend node { .host = "192.0.2.1"; }

sub vcl_init {
    new sm = saintmode.saintmode(node, 10);
}

sub vcl_recv {
    set req.backend_hint = sm.backend();
}

sub vcl_deliver {
    if (resp.status == 500) {
        saintmode.blacklist(10s);  # <- refused
    }
}
