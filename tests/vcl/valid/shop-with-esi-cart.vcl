vcl 4.1;

import std;

backend shop {
    .host = "192.0.2.10";
    .port = "8080";
    .first_byte_timeout = 30s;
}

sub vcl_recv {
    if (req.esi_level == 0) {
        # The cart is personal; the page around it is not.
        unset req.http.X-Cart;
        if (req.http.Cookie ~ "(^|; )cart=") {
            set req.http.X-Cart = regsub(req.http.Cookie, ".*(^|; )cart=([^;]*).*", "\2");
        }
    }
    if (req.url ~ "^/fragments/cart") {
        return (pass);
    }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_backend_fetch {
    if (bereq.url ~ "^/fragments/cart" && bereq.http.X-Cart) {
        set bereq.http.Cookie = "cart=" + bereq.http.X-Cart;
    }
    unset bereq.http.X-Cart;
}

sub vcl_backend_response {
    if (beresp.http.Content-Type ~ "^text/html") {
        set beresp.do_esi = true;
    }
    if (bereq.url !~ "^/fragments/cart") {
        unset beresp.http.Set-Cookie;
        set beresp.ttl = 10m;
        set beresp.grace = 1h;
    }
}

sub vcl_deliver {
    std.log("esi_level:" + req.esi_level);
    if (obj.hits > 0) {
        set resp.http.X-Cache = "HIT";
    } else {
        set resp.http.X-Cache = "MISS";
    }
}
