vcl 4.0;

import var;
import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    var.set("host", req.http.host);
    var.set_string("path", regsub(req.url, "\?.*", ""));
    var.set_int("depth", 3);
    var.set_real("share", 0.25);
    var.set_duration("grace", 30s);
    var.set_ip("peer", client.ip);
    var.set_backend("server", default);

    if (var.global_get("closed") == "yes") {
        return (synth(503, "Closed"));
    }
    if (req.url == "/close" && var.get_ip("peer") == server.ip) {
        var.global_set("closed", "yes");
    }
    set req.backend_hint = var.get_backend("server");
    set req.grace = var.get_duration("grace");
    set req.http.X-Sum = var.get_int("depth") + 4;
    set req.http.X-Share = "" + var.get_real("share");
    std.log(var.get("host") + var.get_string("path"));
    var.clear();
}
