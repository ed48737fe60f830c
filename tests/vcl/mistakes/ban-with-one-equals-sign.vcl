# mend: ==
# varnishd: accepts
vcl 4.1;

acl admins {
    "127.0.0.1";
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ admins) {
            return (synth(405));
        }
        ban("obj.http.X-Section = news"); # <- LINE
        return (synth(200, "Banned"));
    }
}
