# mend: std.ip(
vcl 4.1;

import std;

acl partners {
    "198.51.100.0"/24;
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    # In front of us stands a load balancer that speaks TLS.
    if (req.http.X-Real-IP ~ partners) { # <- LINE
        set req.http.X-Partner = "1";
    }
    std.collect(req.http.Accept);
}
