# mend: return (hash)
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    set req.url = regsub(req.url, "\?utm_[a-z]+=.*$", "");
    if (req.http.Authorization) {
        return (pass);
    }
    if (req.url ~ "^/static/") {
        unset req.http.Cookie;
        return hash; # <- LINE
    }
}
