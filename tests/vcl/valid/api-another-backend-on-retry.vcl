vcl 4.1;

import directors;

backend a { .host = "192.0.2.213"; .port = "8080"; }
backend b { .host = "192.0.2.214"; .port = "8080"; }
backend c { .host = "192.0.2.215"; .port = "8080"; }

sub vcl_init {
    new nodes = directors.shard();
    nodes.set_warmup(0.1);
    nodes.set_rampup(1m);
    if (!nodes.add_backend(a) || !nodes.add_backend(b, ident = "b", weight = 2) ||
        !nodes.add_backend(c, rampup = 0s)) {
        return (fail("cannot add a node"));
    }
    if (!nodes.reconfigure(replicas = 50)) {
        return (fail);
    }
}

sub vcl_backend_fetch {
    set bereq.backend = nodes.backend(by = HASH, alt = bereq.retries, healthy = ALL);
}

sub vcl_backend_response {
    if (beresp.status >= 502 && beresp.status <= 504 && bereq.retries < 2) {
        return (retry);
    }
}

sub vcl_backend_error {
    if (bereq.retries < 2) {
        return (retry);
    }
}
