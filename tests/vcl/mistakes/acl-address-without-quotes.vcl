# mend: "172.16.0.0"/12
vcl 4.1;

acl editors {
    "127.0.0.1";
    172.16.0.0/12; # <- LINE
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/edit" && !(client.ip ~ editors)) {
        return (synth(403, "Forbidden"));
    }
}
