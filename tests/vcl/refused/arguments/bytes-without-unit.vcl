vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (!std.cache_req_body(65536)) {  # <- refused
        return (synth(413));
    }
}
