# mend: vcl_recv
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recieve { # <- LINE
    if (req.http.Host == "example.net") {
        return (synth(301, "https://www.example.net" + req.url));
    }
}

sub vcl_synth {
    if (resp.status == 301) {
        set resp.http.Location = resp.reason;
        return (deliver);
    }
}
