vcl 4.1;

import std;

backend default { .host = "192.0.2.212"; .port = "8080"; }

sub vcl_recv {
    if (req.restarts == 0 && req.http.X-Request-Id !~ "^[0-9a-f-]{36}$") {
        set req.http.X-Request-Id = server.identity + "-" + req.xid + "-" + std.random(0, 999999);
    }
}

sub vcl_deliver {
    set resp.http.X-Request-Id = req.http.X-Request-Id;
    set resp.http.X-Session = sess.xid;
    set resp.http.X-Via = local.socket + " " + local.endpoint;
}
