# mend: set req.http
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    string lang = regsub(req.http.Accept-Language, "^([a-z]+).*$", "\1"); # <- LINE
    if (req.url == "/") {
        set req.url = "/start";
    }
}
