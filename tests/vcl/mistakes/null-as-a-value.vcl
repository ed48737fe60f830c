# mend: !req.http.X-Token
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/api/" && req.http.X-Token == null) { # <- LINE
        return (synth(401, "Token needed"));
    }
    if (req.url ~ "^/api/") {
        return (pass);
    }
}
