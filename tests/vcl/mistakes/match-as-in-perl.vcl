# mend: ~
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.http.User-Agent =~ "(?i)(bot|crawler|spider)") { # <- LINE
        set req.http.X-Bot = "yes";
    } else {
        set req.http.X-Bot = "no";
    }
}
