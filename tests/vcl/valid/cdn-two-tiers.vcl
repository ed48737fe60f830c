vcl 4.1;

backend left  { .host = "192.0.2.161"; .port = "6081"; }
backend right { .host = "192.0.2.162"; .port = "6081"; }
backend origin { .host = "192.0.2.170"; .port = "80"; }

sub vcl_recv {
    if (req.http.X-From-Sibling) {
        # Two that look sideways must not wait for each other.
        set req.hash_ignore_busy = true;
        set req.backend_hint = origin;
    } else {
        if (server.hostname == "left") {
            set req.backend_hint = right;
        } else {
            set req.backend_hint = left;
        }
    }
}

sub vcl_backend_fetch {
    if (bereq.backend != origin) {
        if (bereq.retries > 0) {
            set bereq.backend = origin;
        } else {
            set bereq.http.X-From-Sibling = server.hostname;
        }
    }
}

sub vcl_backend_response {
    if (bereq.backend == left || bereq.backend == right) {
        if (beresp.status == 503 || beresp.http.X-Miss) {
            return (retry);
        }
    }
}
