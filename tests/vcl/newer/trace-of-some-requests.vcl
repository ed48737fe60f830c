vcl 4.1;

# Needs `req.trace` and `bereq.trace`.

import std;

backend default { .host = "192.0.2.1"; .port = "8080"; }

acl developers { "192.0.2.128"/26; }

sub vcl_recv {
    set req.trace = req.http.X-Trace && client.ip ~ developers;
}

sub vcl_backend_fetch {
    if (bereq.trace) {
        std.log("traced: " + bereq.xid);
    } elsif (bereq.retries > 0) {
        set bereq.trace = true;
    }
}
