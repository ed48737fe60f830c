# mend: /24
vcl 4.1;

acl internal {
    "localhost";
    "192.168.10.0"/"24"; # <- LINE
    "10.0.0.0"/8;
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/status" && client.ip !~ internal) {
        return (synth(404));
    }
}
