vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    set req.http.X-Forwarded-Host = req.http.host + ":" + std.port(server.ip);
    set req.http.X-Trace = "id=" + req.xid
                           + ";host=" + req.http.host   # as it came
                           + ";url=" + req.url;
    set req.url = "/site" + regsub(req.url, "\?.*$", "") + "?v=2";
    if (req.http.host !~ "^www\.") {
        return (synth(750, "http://www." + req.http.host + req.url));
    }
}

sub vcl_deliver {
    set resp.http.X-Cache = "hits=" + obj.hits + " at " + server.identity;
}

sub vcl_synth {
    if (resp.status == 750) {
        set resp.http.Location = resp.reason;
        set resp.status = 301;
        return (deliver);
    }
}
