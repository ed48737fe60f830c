# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

acl purgers { "127.0.0.1"; }

sub vcl_recv {
    if (req.request == "PURGE" && client.ip ~ purgers) {
        # the key is what vcl_hash makes: URL and host
        purge_hash(req.url req.http.host "#");
        error 200 "Purged";
    }
    return (lookup);
}

sub vcl_hash {
    set req.hash += req.url;
    set req.hash += req.http.host;
    return (hash);
}
