# mend: req.http.X-Forwarded-For
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (!req.http["X-Forwarded-For"]) { # <- LINE
        set req.http.X-Forwarded-For = client.ip;
    }
    unset req.http.Forwarded;
}
