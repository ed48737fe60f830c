# vcl 3
acl editors { "127.0.0.1"; "10.14.0.0"/16; !"10.14.99.0"/24; }
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.request == "PURGE") {
        if (!(client.ip ~ editors)) {
            error 405 "Only editors purge.";
        }
        return (lookup);
    }
}

sub vcl_hit {
    if (req.request == "PURGE") { purge; error 200 "Purged."; }
}

sub vcl_miss {
    if (req.request == "PURGE") { purge; error 404 "Not in cache."; }
}

sub vcl_pass {
    if (req.request == "PURGE") { error 502 "PURGE on a passed object."; }
}
