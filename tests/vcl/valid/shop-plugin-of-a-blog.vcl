vcl 4.0;
import std;
/*
 * A blog with a shop in it. Baskets and accounts are not cached.
 */
backend default {
    .host = "127.0.0.1";
    .port = "8081";
    .connect_timeout = 10s;
    .first_byte_timeout = 120s;
    .between_bytes_timeout = 20s;
    .max_connections = 400;
}

acl invalidators {
    "localhost";
    "127.0.0.1";
    "::1";
}

sub vcl_recv {
    set req.http.Host = regsub(req.http.Host, ":[0-9]+", "");
    unset req.http.proxy;

    if (req.method == "PURGE") {
        if (!client.ip ~ invalidators) {
            return (synth(405, "PURGE from the server only"));
        }
        return (purge);
    }

    if (req.url ~ "^/(basket|my-orders|pay|sign-out)" ||
        req.url ~ "\?put=" ||
        req.url ~ "\?callback-of=") {
        return (pass);
    }

    if (req.http.Cookie ~ "basket_filled|basket_digest|shop_session_") {
        return (pass);
    }

    # Cookies of statistics.
    set req.http.Cookie = regsuball(req.http.Cookie, "_ga=[^;]+(; )?", "");
    set req.http.Cookie = regsuball(req.http.Cookie, "_pk_(id|ses)[^=]*=[^;]+(; )?", "");
    set req.http.Cookie = regsuball(req.http.Cookie, "^;\s*", "");
    if (req.http.Cookie ~ "^\s*$") {
        unset req.http.Cookie;
    }

    if (req.http.Authorization) {
        return (pass);
    }
}

sub vcl_backend_response {
    if (bereq.url ~ "^[^?]*\.(css|ico|jpe?g|js|png|svg|woff2?)(\?.*)?$") {
        unset beresp.http.set-cookie;
        set beresp.ttl = 1d;
    }
    if (beresp.status == 500 || beresp.status == 502 || beresp.status == 504) {
        return (abandon);
    }
    set beresp.grace = 6h;
    return (deliver);
}
