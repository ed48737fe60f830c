# mend: ,
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    set req.http.X-Orig-Url = req.url;
    set req.url = regsub(req.url, "^/shop/v1" "/shop"); # <- LINE
    if (req.url ~ "^/shop/search") {
        return (pass);
    }
}
