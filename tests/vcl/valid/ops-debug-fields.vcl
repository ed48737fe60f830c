vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

acl debuggers { "192.0.2.128"/25; }

sub vcl_backend_response {
    set beresp.http.X-Debug-Ttl = beresp.ttl;
    set beresp.http.X-Debug-Grace = beresp.grace;
    set beresp.http.X-Debug-Keep = beresp.keep;
    set beresp.http.X-Debug-Age = beresp.age;
    set beresp.http.X-Debug-Time = beresp.time;
    set beresp.http.X-Debug-Proto = beresp.proto;
    set beresp.http.X-Debug-Hfm = bereq.is_hitmiss;
    set beresp.http.X-Debug-Hfp = bereq.is_hitpass;
    set beresp.http.X-Debug-Bg = bereq.is_bgfetch;
    set beresp.http.X-Debug-Storage = beresp.storage;
    set beresp.http.X-Debug-304 = beresp.was_304;
}

sub vcl_deliver {
    if (client.ip ~ debuggers && req.http.X-Debug) {
        set resp.http.X-Debug-Hits = obj.hits;
        set resp.http.X-Debug-Left = obj.ttl;
        set resp.http.X-Debug-Since = obj.time;
        set resp.http.X-Debug-Hitmiss = req.is_hitmiss;
        set resp.http.X-Debug-Hitpass = req.is_hitpass;
        set resp.http.X-Debug-Uncacheable = obj.uncacheable;
        set resp.http.X-Debug-Transport = req.transport;
        set resp.http.X-Debug-Now = std.strftime(now, "%Y-%m-%dT%H:%M:%SZ");
    } else {
        unset resp.http.X-Debug-Ttl;
        unset resp.http.X-Debug-Grace;
        unset resp.http.X-Debug-Keep;
        unset resp.http.X-Debug-Age;
        unset resp.http.X-Debug-Time;
        unset resp.http.X-Debug-Proto;
        unset resp.http.X-Debug-Hfm;
        unset resp.http.X-Debug-Hfp;
        unset resp.http.X-Debug-Bg;
        unset resp.http.X-Debug-Storage;
        unset resp.http.X-Debug-304;
    }
}

sub vcl_hit {
    if (req.http.X-Debug) {
        std.log("object " + obj.proto + " " + obj.status + " " + obj.reason + " " + obj.http.ETag + " in " + obj.storage);
    }
}
