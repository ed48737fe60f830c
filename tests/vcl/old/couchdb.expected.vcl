vcl 4.1;

import directors;

backend default {
    .host = "10.0.0.5";
    .port = "5984";
}

backend replica {
    .host = "10.0.0.6";
    .port = "5984";
}
sub vcl_init {
    new couchdb = directors.round_robin();
    couchdb.add_backend(default);
    couchdb.add_backend(replica);
}

sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    set req.backend_hint = couchdb.backend();
    return (hash);
}
