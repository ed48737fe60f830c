# mend: req.restarts
# varnishd: accepts
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_deliver {
    if (resp.status == 503) {
        return (restart); # <- LINE
    }
    unset resp.http.X-Varnish;
}
