# mend: .host
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

backend media { # <- LINE
    .port = "8081";
    .connect_timeout = 1s;
}

sub vcl_recv {
    if (req.url ~ "^/media/") {
        set req.backend_hint = media;
    }
}
