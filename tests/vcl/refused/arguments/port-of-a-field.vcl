vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (std.port(req.http.X-Address) == 443) {  # <- refused
        set req.http.X-Scheme = "https";
    }
}
