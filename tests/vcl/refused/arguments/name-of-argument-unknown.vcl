vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (std.integer(req.http.X-Page, default = 1) > 100) {  # <- refused
        return (synth(400));
    }
}
