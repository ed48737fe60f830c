vcl 4.0;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.url == "/count.gif") {
        return (synth(204));
    }
}

sub vcl_synth {
    if (resp.status == 204 && req.url == "/count.gif") {
        set resp.http.Content-Type = "image/gif";
        set resp.http.Cache-Control = "no-store";
        synthetic("");
        return (deliver);
    }
}
