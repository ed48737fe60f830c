vcl 4.1;

probe alive {
    .url = "/ping";
    .interval = 10s;
    .timeout = 1500ms;
}

backend pages  { .host = "192.0.2.1"; .port = "8080"; .probe = alive; }
backend images { .host = "192.0.2.2"; .port = "8081"; .probe = alive; }

sub vcl_recv {
    if (req.url ~ "^/img/(\d+)x(\d+)/") {
        set req.backend_hint = images;
        unset req.http.Cookie;
        set req.url = regsub(req.url, "\?.*$", "");
        // Sizes that nobody asks for are not made.
        if (req.url !~ "^/img/(80x80|160x160|320x320|640x640)/") {
            return (synth(404, "No such size"));
        }
    } else {
        set req.backend_hint = pages;
    }
}

sub vcl_backend_response {
    if (bereq.backend == images && beresp.status == 200) {
        set beresp.ttl = 4w;
        set beresp.http.Cache-Control = "public, max-age=2419200, immutable";
    }
}
