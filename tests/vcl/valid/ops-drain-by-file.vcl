vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_deliver {
    if (std.file_exists("/run/cache/drain")) {
        set resp.http.Connection = "close";
    }
}

sub vcl_recv {
    if (req.url == "/lb-check") {
        if (std.file_exists("/run/cache/drain")) {
            return (synth(503, "draining"));
        } else {
            return (synth(200, std.getenv("HOSTNAME")));
        }
    }
}
