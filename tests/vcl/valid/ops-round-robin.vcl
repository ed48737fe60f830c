vcl 4.0;

import directors;

backend web1 { .host = "192.0.2.101"; .port = "80"; }
backend web2 { .host = "192.0.2.102"; .port = "80"; }
backend web3 { .host = "192.0.2.103"; .port = "80"; }

sub vcl_init {
    new web = directors.round_robin();
    web.add_backend(web1);
    web.add_backend(web2);
    web.add_backend(web3);
    return (ok);
}

sub vcl_recv {
    set req.backend_hint = web.backend();
}
