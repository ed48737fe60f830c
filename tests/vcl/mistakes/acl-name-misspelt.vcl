# mend: purgers
vcl 4.1;

acl purgers {
    "127.0.0.1";
    "::1";
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ purger) { # <- LINE
            return (synth(405));
        }
        ban("obj.http.X-Section == news");
        return (synth(200, "Banned"));
    }
    if (req.method == "PURGE" && client.ip ~ purgers) {
        return (purge);
    }
}
