vcl 4.1;

import directors;

backend s1 { .host = "192.0.2.111"; }
backend s2 { .host = "192.0.2.112"; }
backend s3 { .host = "192.0.2.113"; }

sub vcl_init {
    new shards = directors.shard();
    shards.add_backend(s1, "s1", 30s, 1.0);
    shards.add_backend(s2, "s2", 30s, 1.0);
    shards.add_backend(s3, "s3", 30s, 2.0);
    shards.set_rampup(1m);
    shards.reconfigure(25);
}

sub vcl_recv {
    set req.backend_hint = shards.backend(by=URL, warmup=0.05, rampup=false);
}
