vcl 4.0;

import std;

backend default { .host = "192.0.2.57"; .port = "8080"; }

sub vcl_recv {
    if (req.method == "POST") {
        if (!std.cache_req_body(500KB)) {
            return (synth(413, "Too large"));
        }
        std.late_100_continue(true);
        return (pass);
    }
}

sub vcl_backend_fetch {
    if (bereq.method == "GET" && bereq.http.Content-Length) {
        unset bereq.body;
    }
    return (fetch);
}

sub vcl_backend_response {
    # A body that is kept can be sent to the server again.
    if (beresp.status == 503 && bereq.retries < 1) {
        return (retry);
    }
}
