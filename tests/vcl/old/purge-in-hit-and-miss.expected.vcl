vcl 4.1;

acl editors { "127.0.0.1"; "10.14.0.0"/16; !"10.14.99.0"/24; }
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.method == "PURGE") {
        if (!(client.ip ~ editors)) {
            return (synth(405, "Only editors purge."));
        }
        return (purge);
    }
}

sub vcl_purge {
    return (synth(200, "Purged."));
}
