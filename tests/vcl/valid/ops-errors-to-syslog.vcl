vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_backend_error {
    std.syslog(11, "fetch failed: " + bereq.method + " " + bereq.url + " xid " + bereq.xid
        + " backend " + bereq.backend + " after " + bereq.retries + " retries");
}

sub vcl_backend_response {
    if (beresp.status >= 500) {
        std.syslog(8 + 4, "status " + beresp.status + " of " + beresp.backend.name + ": " + bereq.url);
    }
    std.timestamp("response");
}

sub vcl_deliver {
    if (now - req.time > 2s) {
        std.log("slow: " + req.url);
    }
}
