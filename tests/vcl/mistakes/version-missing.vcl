# mend: vcl 4.1;
# line: 3
backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/ping$") {
        return (synth(200, "pong"));
    }
}

sub vcl_deliver {
    unset resp.http.Via;
}
