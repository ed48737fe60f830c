# vcl 2
# From the time of 2.0: obj is the answer of the backend.
backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_fetch {
    if (obj.http.Set-Cookie) {
        return (pass);
    }
    if (obj.http.Pragma ~ "no-cache" || obj.http.Cache-Control ~ "private") {
        return (pass);
    }
    if (!obj.cacheable) {
        return (pass);
    }
    if (req.url ~ "\.rss$") {
        set obj.ttl = 5m;
    }
    set obj.grace = 30s;
    remove obj.http.X-Powered-By;
    return (deliver);
}

sub vcl_recv {
    set req.grace = 30s;
    if (req.request == "GET" && req.http.Authorization) { return (pass); }
}
