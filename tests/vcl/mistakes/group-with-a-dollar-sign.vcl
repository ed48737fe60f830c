# mend: \1
# varnishd: accepts
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    # /en/page is the page with a parameter for the application.
    set req.url = regsub(req.url, "^/([a-z]{2})/([^?]*)$", "/$2?lang=$1"); # <- LINE
    unset req.http.Accept-Language;
}
