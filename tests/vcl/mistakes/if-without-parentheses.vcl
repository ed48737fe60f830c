# mend: (
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if req.url ~ "^/preview/" { # <- LINE
        return (pass);
    }
    if (req.http.Cookie) {
        set req.http.Cookie = regsuball(req.http.Cookie, "(^|; )_ga[^;]*", "");
    }
}
