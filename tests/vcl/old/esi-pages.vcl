# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.url ~ "^/fragments/user") {
        return (pass);
    }
    remove req.http.Cookie;
}

sub vcl_fetch {
    if (req.url ~ "^/fragments/") {
        set beresp.ttl = 5m;
    } else if (req.url == "/" || req.url ~ "\.html$") {
        esi;                 /* pages are put together here */
        set beresp.ttl = 1h;
    }
}

sub vcl_error {
    # a fragment that fails leaves a gap, nothing else
    if (req.url ~ "^/fragments/") {
        set obj.status = 200;
        synthetic {""};
        return (deliver);
    }
}
