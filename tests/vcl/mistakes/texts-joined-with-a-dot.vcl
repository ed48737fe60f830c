# mend: +
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.http.X-Forwarded-Proto != "https") {
        return (synth(750, "https://" . req.http.Host)); # <- LINE
    }
}

sub vcl_synth {
    if (resp.status == 750) {
        set resp.status = 301;
        set resp.http.Location = resp.reason + req.url;
        return (deliver);
    }
}
