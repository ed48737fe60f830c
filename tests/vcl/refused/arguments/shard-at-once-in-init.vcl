# varnishd: accepts
vcl 4.1;

import directors;

backend one { .host = "192.0.2.1"; }

sub vcl_init {
    new ring = directors.shard();
    ring.add_backend(one);
    ring.reconfigure();
    new front = directors.fallback();
    front.add_backend(ring.backend(resolve=NOW));  # <- refused
}

sub vcl_recv {
    set req.backend_hint = front.backend();
}
