vcl 4.0;

backend default { .host = "192.0.2.209"; .port = "8080"; }
backend events  { .host = "192.0.2.210"; .port = "8080"; }

sub vcl_recv {
    if (req.url ~ "^/events/stream") {
        set req.backend_hint = events;
        return (pipe);
    }
}

sub vcl_pipe {
    if (bereq.backend == events) {
        set bereq.connect_timeout = 2s;
        set bereq.http.X-Xid = bereq.xid;
        set bereq.http.X-Since = bereq.time;
        unset bereq.http.X-Forwarded-For;
        return (pipe);
    } else {
        return (synth(501, "No pipe here"));
    }
}
