# mend: acl
# varnishd: accepts
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        return (purge); # <- LINE
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
}
