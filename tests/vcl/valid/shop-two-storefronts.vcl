vcl 4.1;

import std;
import header;
import cookie;

# Two storefronts on one cache: a German one and a French one, each with its
# own servers, prices and legal pages.

probe storefront {
    .url = "/alive";
    .interval = 5s;
    .timeout = 2s;
    .window = 6;
    .threshold = 4;
}

backend de {
    .host = "192.0.2.101";
    .port = "80";
    .host_header = "shop.example.de";
    .probe = storefront;
}

backend fr {
    .host = "192.0.2.102";
    .port = "80";
    .host_header = "boutique.example.fr";
    .probe = storefront;
}

backend payments {
    .host = "192.0.2.103";
    .port = "8443";
    .first_byte_timeout = 90s;
    .max_connections = 40;
}

acl warehouse {
    "192.0.2.192"/27;
    ! "192.0.2.223";
}

sub storefront_of_host {
    set req.http.Host = std.tolower(regsub(req.http.Host, ":\d+$", ""));
    unset req.http.X-Front;
    if (req.http.Host == "shop.example.de" || req.http.Host == "www.shop.example.de") {
        set req.backend_hint = de;
        set req.http.X-Front = "de";
        if (req.http.Host ~ "^www\.") {
            return (synth(851, "https://shop.example.de" + req.url));
        }
    } else if (req.http.Host == "boutique.example.fr") {
        set req.backend_hint = fr;
        set req.http.X-Front = "fr";
    } else {
        return (synth(421, "Misdirected Request"));
    }
}

sub legal_pages {
    if (req.http.X-Front == "de") {
        if (req.url ~ "^/(legal|imprint)$") {
            set req.url = "/impressum";
        } elsif (req.url == "/terms") {
            set req.url = "/agb";
        }
    } elsif (req.http.X-Front == "fr") {
        if (req.url ~ "^/(legal|imprint)$") {
            set req.url = "/mentions-legales";
        } elsif (req.url == "/terms") {
            set req.url = "/cgv";
        }
    }
}

sub currency {
    cookie.parse(req.http.Cookie);
    if (cookie.get("currency") ~ "^(EUR|CHF)$") {
        set req.http.X-Currency = cookie.get("currency");
    } else {
        set req.http.X-Currency = "EUR";
    }
    cookie.keep_re("^(sid|basket_[0-9]+)$");
    set req.http.Cookie = cookie.get_string();
    if (req.http.Cookie !~ "=") {
        unset req.http.Cookie;
    }
}

sub vcl_recv {
    call storefront_of_host;
    call legal_pages;

    if (req.url ~ "^/pay/") {
        set req.backend_hint = payments;
        return (pass);
    }
    if (req.url ~ "^/stock/" && client.ip !~ warehouse) {
        return (synth(403));
    }
    # Experiments of the front end change fields; a restart begins anew.
    if (req.restarts > 0) {
        std.rollback(req);
        call storefront_of_host;
    }
    call currency;
    if (req.http.Cookie) {
        return (pass);
    }
    header.regsub(req, "^(?i)(X-Ab-[a-z]+): .*$", "\1: control");
    header.append(header.dyn(req, "X-Front-" + req.http.X-Front), "1");
    return (hash);
}

sub vcl_hash {
    hash_data(req.http.X-Currency);
}

sub vcl_backend_fetch {
    if (bereq.backend == payments) {
        set bereq.connect_timeout = 10s;
    }
}

sub vcl_backend_response {
    set beresp.http.X-Session = header.get(beresp.http.Set-Cookie, "^sid=");
    if (beresp.http.X-Session == "") {
        unset beresp.http.X-Session;
        unset beresp.http.Set-Cookie;
    } else {
        set beresp.uncacheable = true;
        set beresp.ttl = 1m;
        return (deliver);
    }
    if (bereq.url ~ "^/(impressum|agb|mentions-legales|cgv)$") {
        set beresp.ttl = 1w;
    }
    set beresp.grace = 30m;
}

sub vcl_deliver {
    if (req.http.X-Front == "fr") {
        set resp.http.Content-Language = "fr";
    } else {
        set resp.http.Content-Language = "de";
    }
    if (resp.status == 502 && req.restarts == 0) {
        return (restart);
    }
}

sub vcl_synth {
    if (resp.status == 851) {
        set resp.http.Location = resp.reason;
        set resp.status = 301;
        set resp.reason = "Moved Permanently";
        return (deliver);
    }
}
