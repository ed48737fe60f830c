# mend: cluster.backend()
vcl 4.1;

import directors;

backend n1 { .host = "10.9.0.1"; }
backend n2 { .host = "10.9.0.2"; }

sub vcl_init {
    new cluster = directors.random();
    cluster.add_backend(n1, 3);
    cluster.add_backend(n2, 1);
}

sub vcl_recv {
    set req.backend_hint = cluster; # <- LINE
}
