# mend: directors.round_robin
vcl 4.1;

import directors;

backend web1 { .host = "192.0.2.11"; .port = "8080"; }
backend web2 { .host = "192.0.2.12"; .port = "8080"; }

sub vcl_init {
    new web = directors.roundrobin(); # <- LINE
    web.add_backend(web1);
    web.add_backend(web2);
}

sub vcl_recv {
    set req.backend_hint = web.backend();
}
