vcl 4.1;

import directors;

backend cold1 { .host = "192.0.2.114"; }
backend cold2 { .host = "192.0.2.115"; }
backend warm1 { .host = "192.0.2.116"; }
backend warm2 { .host = "192.0.2.117"; }

sub vcl_init {
    # Both rings share one set of parameters.
    new p = directors.shard_param();
    p.set(by=URL, warmup=0.2, rampup=true, healthy=CHOSEN);

    new cold = directors.shard();
    cold.associate(p.use());
    cold.add_backend(cold1);
    cold.add_backend(cold2);
    cold.reconfigure();

    new warm = directors.shard();
    warm.associate(p.use());
    warm.add_backend(warm1);
    warm.add_backend(warm2);
    warm.reconfigure();
}

sub vcl_recv {
    if (req.url ~ "^/archive/") {
        set req.backend_hint = cold.backend(resolve=LAZY);
    } else {
        set req.backend_hint = warm.backend(resolve=LAZY);
    }
}

sub vcl_backend_fetch {
    if (bereq.retries > 0) {
        p.set(alt=bereq.retries, by=URL, healthy=IGNORE);
    }
}

sub vcl_backend_response {
    set beresp.http.X-Shard = p.get_by() + ":" + p.get_alt() + ":" + p.get_healthy();
}
