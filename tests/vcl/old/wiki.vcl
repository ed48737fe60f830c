# vcl 2
# A wiki: anonymous readers from the cache, writers to Apache.
backend default {
    .host = "localhost";
    .port = "8080";
}

acl purge {
    "localhost";
}

sub vcl_recv {
    if (req.request == "PURGE") {
        if (!client.ip ~ purge) {
            error 405 "Not allowed.";
        }
        lookup;
    }
    if (req.request != "GET" && req.request != "HEAD") {
        pass;
    }
    if (req.http.Authorization || req.http.Cookie ~ "(UserID|_session)") {
        pass;
    }
    /* one copy for each kind of compression is enough */
    if (req.http.Accept-Encoding ~ "gzip") {
        set req.http.Accept-Encoding = "gzip";
    } else {
        remove req.http.Accept-Encoding;
    }
    lookup;
}

sub vcl_hit {
    if (req.request == "PURGE") {
        set obj.ttl = 0s;
        error 200 "Purged";
    }
}

sub vcl_miss {
    if (req.request == "PURGE") {
        error 404 "Not in cache";
    }
}

sub vcl_fetch {
    if (!obj.cacheable) {
        pass;
    }
    if (obj.http.Set-Cookie) {
        pass;
    }
    set obj.prefetch = -30s;
    deliver;
}
