# mend: std.integer(
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.http.X-Risk-Score > 50) { # <- LINE
        std.syslog(5, "risky request from " + client.ip);
        return (synth(403, "Refused"));
    }
}
