# decision: purge-hash bans cannot test the hash: `return (purge)` for this request's own key, or a ban of URL and host
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

acl purgers { "127.0.0.1"; }

sub vcl_recv {
    if (req.method == "PURGE" && client.ip ~ purgers) {
        # the key is what vcl_hash makes: URL and host
        return (purge);
    }
    return (hash);
}

sub vcl_hash {
    hash_data(req.url);
    hash_data(req.http.host);
    return (lookup);
}
