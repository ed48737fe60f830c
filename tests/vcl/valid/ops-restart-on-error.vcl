vcl 4.0;

backend main { .host = "192.0.2.124"; .port = "80"; }
backend spare { .host = "192.0.2.125"; .port = "80"; }

sub vcl_recv {
    if (req.restarts == 0) {
        set req.backend_hint = main;
    } else if (req.restarts == 1) {
        set req.backend_hint = spare;
        set req.hash_always_miss = true;
    } else {
        return (synth(503, "Both servers failed"));
    }
}

sub vcl_deliver {
    if (resp.status == 503 && req.restarts < 1) {
        return (restart);
    }
}

sub vcl_synth {
    if (resp.status == 503 && req.restarts < 1) {
        return (restart);
    }
}
