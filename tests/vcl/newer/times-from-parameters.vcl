vcl 4.1;

# Needs `param.*`.

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_backend_response {
    if (beresp.http.X-Personal) {
        set beresp.ttl = param.uncacheable_ttl;
        set beresp.uncacheable = true;
    } elsif (beresp.ttl == param.default_ttl) {
        set beresp.grace = param.default_grace * 3;
        set beresp.keep = param.default_keep;
    } elsif (beresp.ttl < param.shortlived) {
        set beresp.grace = 1s;
    }
}

sub vcl_recv {
    if (req.restarts >= param.max_restarts - 1 || req.esi_level >= param.max_esi_depth) {
        return (synth(503));
    }
}
