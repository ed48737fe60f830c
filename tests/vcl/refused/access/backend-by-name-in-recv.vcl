# varnishd: accepts
vcl 4.1;

import directors;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    set req.backend_hint = directors.lookup(req.http.X-Backend);  # <- refused
}
