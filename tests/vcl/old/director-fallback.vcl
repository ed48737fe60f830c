# vcl 3
probe alive {
    .url = "/alive";
    .interval = 3s;
    .window = 4;
    .threshold = 2;
}
backend primary   { .host = "10.8.0.1"; .probe = alive; }
backend secondary { .host = "10.8.0.2"; .probe = alive; }
backend sorry     { .host = "10.8.0.3"; }   # a static page

director service fallback {
    { .backend = primary; }
    { .backend = secondary; }
    { .backend = sorry; }
}

sub vcl_recv {
    set req.backend = service;
    if (!req.backend.healthy) {
        error 503 "Nobody is at home";
    }
}

sub vcl_fetch {
    if (beresp.backend.name == "sorry") {
        set beresp.ttl = 5s;
        return (hit_for_pass);
    }
}
