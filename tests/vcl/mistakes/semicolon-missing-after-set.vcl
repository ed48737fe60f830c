# mend: ;
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.http.X-Forwarded-Proto == "https") {
        set req.http.X-Scheme = "https" # <- LINE
        set req.http.X-Port = "443";
    } else {
        set req.http.X-Scheme = "http";
        set req.http.X-Port = "80";
    }
}
