vcl 4.1;

import directors;

# Backends come and go by module; the default one always fails.
backend default none;
backend node { .host = "192.0.2.130"; .port = "8080"; }

sub vcl_init {
    new pool = directors.fallback();
    pool.add_backend(node);
    pool.add_backend(directors.lookup("node"));
}

sub vcl_recv {
    if (req.http.host ~ "\.internal\.example$") {
        set req.backend_hint = pool.backend();
    } else {
        set req.backend_hint = default;
    }
    if (!req.backend_hint) {
        return (synth(503, "No backend"));
    }
    set req.http.X-Resolved = req.backend_hint.resolve();
}
