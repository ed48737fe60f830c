# mend: req.method
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

acl purgers {
    "localhost";
    "192.168.0.0"/16;
}

sub vcl_recv {
    if (req.request == "PURGE") { # <- LINE
        if (client.ip !~ purgers) {
            return (synth(405, "Not allowed"));
        }
        return (purge);
    }
}
