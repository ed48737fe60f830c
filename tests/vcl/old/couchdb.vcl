# vcl 2
backend default {
    .host = "10.0.0.5";
    .port = "5984";
}

backend replica {
    .host = "10.0.0.6";
    .port = "5984";
}
director couchdb round-robin {
    { .backend = default; }
    { .backend = replica; }
}

sub vcl_recv {
    if (req.request != "GET" && req.request != "HEAD") {
        return (pass);
    }
    set req.backend = couchdb;
    return (lookup);
}
