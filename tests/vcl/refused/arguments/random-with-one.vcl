vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    set req.http.X-Dice = std.random(6);  # <- refused
}
