vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    set client.ip = std.ip(req.http.X-Real-IP, "0.0.0.0");  # <- refused
}
