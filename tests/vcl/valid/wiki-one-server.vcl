vcl 4.0;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

acl purge {
    "127.0.0.1";
    "192.0.2.12";
}

sub vcl_recv {
    # The wiki itself says which pages are to be purged.
    if (req.method == "PURGE") {
        if (!client.ip ~ purge) {
            return (synth(405, "No purge from here"));
        }
        return (purge);
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.http.Authorization || req.http.Cookie ~ "session" || req.http.Cookie ~ "Token") {
        return (pass);
    }
    # Anonymous readers have no use for cookies.
    unset req.http.Cookie;
    set req.http.X-Forwarded-For = client.ip;
    return (hash);
}

sub vcl_backend_response {
    set beresp.grace = 120s;
    if (beresp.ttl < 36h) {
        set beresp.ttl = 36h;
    }
    if (!beresp.ttl > 0s) {
        set beresp.uncacheable = true;
    }
}

sub vcl_deliver {
    if (req.url !~ "^/(load|api)\.php") {
        set resp.http.Cache-Control = "private, s-maxage=0, max-age=0, must-revalidate";
    }
}
