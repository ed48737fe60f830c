# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

acl staff { "10.23.0.0"/16; }

sub vcl_recv {
    if (req.request != "GET" && req.request != "HEAD") { return (pass); }
    remove req.http.Cookie;
    return (lookup);
}

sub vcl_hit {
    # Reload with the shift key: only the staff gets a fresh page.
    if (req.http.Cache-Control ~ "no-cache" && client.ip ~ staff) {
        return (fetch);
    }
    return (deliver);
}
