vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8008";
}

acl purge { "127.0.0.1"; "172.17.0.0"/16; }

sub vcl_recv {
    if (req.method == "PURGE") {
        if (!client.ip ~ purge) { return (synth(405, "Not allowed.")); }
        return (purge);
    }
}

sub vcl_purge {
    return (synth(200, "Purged."));
}
