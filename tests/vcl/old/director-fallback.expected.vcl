vcl 4.1;

import std;
import directors;

probe alive {
    .url = "/alive";
    .interval = 3s;
    .window = 4;
    .threshold = 2;
}
backend primary   { .host = "10.8.0.1"; .probe = alive; }
backend secondary { .host = "10.8.0.2"; .probe = alive; }
backend sorry     { .host = "10.8.0.3"; }   # a static page

sub vcl_init {
    new service = directors.fallback();
    service.add_backend(primary);
    service.add_backend(secondary);
    service.add_backend(sorry);
}

sub vcl_recv {
    set req.backend_hint = service.backend();
    if (!std.healthy(req.backend_hint)) {
        return (synth(503, "Nobody is at home"));
    }
}

sub vcl_backend_response {
    if (beresp.backend.name == "sorry") {
        set beresp.ttl = 5s;
        set beresp.uncacheable = true;
        return (deliver);
    }
}
