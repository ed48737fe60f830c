# vcl 2
backend default {
    .host = "127.0.0.1";
    .port = "8008";
}

acl purge { "127.0.0.1"; "172.17.0.0"/16; }

sub vcl_recv {
    if (req.request == "PURGE") {
        if (!client.ip ~ purge) { error 405 "Not allowed."; }
        return (lookup);
    }
}

sub vcl_hit {
    if (req.request == "PURGE") {
        set obj.ttl = 0s;
        error 200 "Purged.";
    }
}

sub vcl_miss {
    if (req.request == "PURGE") {
        error 404 "Not in cache.";
    }
}
