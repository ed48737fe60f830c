# mend: vcl_backend_response
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8000";
}

sub vcl_recv {
    if (req.url ~ "\.(css|js|png|svg|woff2)$") {
        unset req.http.Cookie;
        set beresp.ttl = 7d; # <- LINE
        return (hash);
    }
}

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = "HIT";
    } else {
        set resp.http.X-Cache = "MISS";
    }
}
