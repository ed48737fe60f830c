vcl 4.1;

/*
 * An edge of a content network.
 *
 *   recv      control requests, hosts, normal forms, classes
 *   hash      class and variant
 *   response  times by class
 *   deliver   fields for clients
 */

import std;
import directors;
import cookie;
import header;
import xkey;
import vsthrottle;

# ------------------------------------------------------------------- shields

probe shield_alive {
    .url = "/.well-known/shield";
    .interval = 2s;
    .timeout = 1s;
    .window = 8;
    .threshold = 6;
    .initial = 7;
}

backend shield_a1 { .host = "198.51.100.161"; .port = "80"; .probe = shield_alive; .max_connections = 500; }
backend shield_a2 { .host = "198.51.100.162"; .port = "80"; .probe = shield_alive; .max_connections = 500; }
backend shield_b1 { .host = "198.51.100.193"; .port = "80"; .probe = shield_alive; .max_connections = 500; }
backend shield_b2 { .host = "198.51.100.194"; .port = "80"; .probe = shield_alive; .max_connections = 500; }

acl control -log {
    "198.51.100.128"/25;
    "2001:db8:ed6e::"/48;
    ! "198.51.100.255";
}

acl trusted_proxies +table {
    "192.0.2.0"/25;
    "2001:db8:9::"/56;
}

sub vcl_init {
    new site_a = directors.hash();
    site_a.add_backend(shield_a1);
    site_a.add_backend(shield_a2);

    new site_b = directors.hash();
    site_b.add_backend(shield_b1);
    site_b.add_backend(shield_b2);
}

# -------------------------------------------------------------- control plane

sub control_requests {
    if (req.method != "PURGE" && req.method != "PURGEKEY" && req.method != "SOFTKEY" && req.method != "REFRESH") {
        return;
    }
    if (client.ip !~ control) {
        return (synth(403, "Control only"));
    }
    if (req.method == "PURGE") {
        return (purge);
    } elsif (req.method == "REFRESH") {
        set req.method = "GET";
        set req.hash_always_miss = true;
    } elsif (!req.http.X-Key) {
        return (synth(400, "X-Key missing"));
    } elsif (req.method == "SOFTKEY") {
        set req.http.X-Count = xkey.softpurge(req.http.X-Key);
        return (synth(200, req.http.X-Count));
    } else {
        set req.http.X-Count = xkey.purge(req.http.X-Key);
        return (synth(200, req.http.X-Count));
    }
}

# ---------------------------------------------------------------- normal forms

sub client_address {
    if (remote.ip ~ trusted_proxies && req.http.X-Forwarded-For) {
        set req.http.X-Client = regsub(req.http.X-Forwarded-For, "^.*, *", "");
    } else {
        set req.http.X-Client = client.ip;
    }
    set client.identity = req.http.X-Client;
}

sub normal_host {
    set req.http.Host = std.tolower(regsub(req.http.Host, ":\d+$", ""));
    if (req.http.Host ~ "^(?:www|static|img|video)\.(example\.(?:com|net|org))$") {
        set req.http.X-Site = regsub(req.http.Host, "^[a-z]+\.", "");
    } elsif (req.http.Host ~ "^example\.(com|net|org)$") {
        return (synth(801, "https://www." + req.http.Host + req.url));
    } else {
        return (synth(404, "Unknown site"));
    }
}

sub normal_encoding {
    if (req.http.Accept-Encoding ~ "\bbr\b" && req.url !~ "\.(jpe?g|png|webp|avif|mp4|woff2)$") {
        set req.http.X-Coding = "br";
    } elsif (req.http.Accept-Encoding ~ "\bgzip\b") {
        set req.http.X-Coding = "gzip";
    } else {
        set req.http.X-Coding = "identity";
    }
}

sub class_of_request {
    if (req.http.Host ~ "^(static|img)\." || req.url ~ "\.(css|js|woff2?|svg|ico)(\?|$)") {
        set req.http.X-Class = "static";
    } elsif (req.http.Host ~ "^video\.") {
        set req.http.X-Class = "video";
    } elsif (req.url ~ "^/api/") {
        set req.http.X-Class = "api";
    } else {
        set req.http.X-Class = "page";
    }
}

sub cookies_of_class {
    if (req.http.X-Class ~ "^(static|video)$") {
        unset req.http.Cookie;
        return;
    }
    cookie.parse(req.http.Cookie);
    cookie.keep("sid,consent,ab");
    if (cookie.isset("ab")) {
        set req.http.X-Variant = regsub(cookie.get("ab"), "[^a-c]", "");
    } else {
        unset req.http.X-Variant;
    }
    if (cookie.isset("sid")) {
        set req.http.Cookie = cookie.get_string();
    } else {
        unset req.http.Cookie;
    }
}

sub vcl_recv {
    if (req.url == "/.well-known/edge") {
        return (synth(200, "edge " + server.identity));
    }
    call control_requests;
    if (req.restarts == 0) {
        call client_address;
    }
    call normal_host;
    call normal_encoding;
    call class_of_request;
    call cookies_of_class;

    if (req.http.X-Site == "example.org") {
        set req.backend_hint = site_b.backend(req.url);
    } else {
        set req.backend_hint = site_a.backend(req.url);
    }

    if (req.http.X-Class == "api") {
        if (vsthrottle.is_denied("api " + client.identity, 300, 1m, 10s)) {
            return (synth(429, "Slow down"));
        }
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.http.Authorization || req.http.Cookie ~ "sid=") {
        return (pass);
    }
    if (!std.healthy(req.backend_hint)) {
        set req.grace = 3d;
    } else {
        set req.grace = 5m;
    }
    return (hash);
}

sub vcl_hash {
    hash_data(req.http.X-Class);
    if (req.http.X-Class == "page") {
        hash_data(req.http.X-Variant);
        hash_data(req.http.X-Coding);
    }
}

# -------------------------------------------------------------------- backend

sub vcl_backend_fetch {
    set bereq.http.X-Edge = server.identity;
    unset bereq.http.X-Count;
    if (bereq.http.X-Coding) {
        set bereq.http.Accept-Encoding = bereq.http.X-Coding;
    }
    if (bereq.http.X-Class == "video") {
        set bereq.first_byte_timeout = 5s;
        set bereq.between_bytes_timeout = 5s;
    } elsif (bereq.uncacheable) {
        set bereq.first_byte_timeout = 55s;
    }
}

sub vcl_backend_response {
    if (beresp.status >= 500 && beresp.status != 501) {
        if (bereq.is_bgfetch) {
            return (abandon);
        }
        if (bereq.retries < 1 && bereq.method != "POST") {
            return (retry);
        }
        set beresp.uncacheable = true;
        set beresp.ttl = 2s;
        return (deliver);
    }
    if (bereq.http.X-Class == "static") {
        unset beresp.http.Set-Cookie;
        if (beresp.ttl < 1h) {
            set beresp.ttl = 1h;
        }
        set beresp.grace = 30d;
        set beresp.keep = 30d;
    } elsif (bereq.http.X-Class == "video") {
        unset beresp.http.Set-Cookie;
        set beresp.do_stream = true;
        set beresp.grace = 10s;
    } elsif (bereq.http.X-Class == "api") {
        if (!beresp.http.Cache-Control) {
            set beresp.ttl = 1s;
        }
        set beresp.grace = 30s;
    } else {
        set beresp.do_esi = beresp.http.Surrogate-Control ~ "ESI/1\.0";
        set beresp.grace = 3d;
    }
    if (beresp.http.Surrogate-Key && !beresp.http.xkey) {
        header.copy(beresp.http.Surrogate-Key, beresp.http.xkey);
    }
    if (beresp.http.Surrogate-Control ~ "max-age=\d+") {
        set beresp.ttl = std.duration(regsub(beresp.http.Surrogate-Control, "^.*max-age=(\d+).*$", "\1s"), beresp.ttl);
        unset beresp.http.Surrogate-Control;
    }
}

sub vcl_backend_error {
    if (bereq.retries == 0) {
        return (retry);
    }
    set beresp.status = 504;
    set beresp.reason = "Shield does not answer";
    set beresp.http.Cache-Control = "no-store";
    set beresp.ttl = 1s;
}

# --------------------------------------------------------------------- client

sub vcl_deliver {
    header.append(resp.http.X-Path, server.identity);
    if (obj.hits > 0) {
        set resp.http.X-Cache = "hit from " + server.identity;
    } elsif (obj.uncacheable) {
        set resp.http.X-Cache = "pass from " + server.identity;
    } else {
        set resp.http.X-Cache = "miss from " + server.identity;
    }
    if (client.ip !~ control) {
        unset resp.http.xkey;
        unset resp.http.Surrogate-Key;
        unset resp.http.X-Varnish;
        unset resp.http.Via;
    }
    if (req.http.X-Class == "page") {
        set resp.http.Cache-Control = regsub(resp.http.Cache-Control, "s-maxage=\d+,? ?", "");
        std.collect(resp.http.Vary);
    }
}

sub vcl_synth {
    if (resp.status == 801) {
        set resp.http.Location = resp.reason;
        set resp.status = 301;
        set resp.reason = "Moved Permanently";
    } elsif (resp.status == 429) {
        set resp.http.Retry-After = "10";
    }
    set resp.http.Content-Type = "text/plain";
    set resp.body = resp.reason + {"
"};
    return (deliver);
}
