vcl 4.0;

backend default { .host = "192.0.2.53"; .port = "8080"; }

sub vcl_recv {
    if (req.url ~ "^/media/.*\.(mp4|webm|mov|iso|zip)$") {
        if (req.http.Range) {
            return (pass);
        }
        unset req.http.Cookie;
    }
}

sub vcl_backend_response {
    if (bereq.url ~ "^/media/") {
        set beresp.do_stream = true;
        set beresp.do_gzip = false;
        if (beresp.http.Content-Length ~ "^[0-9]{9,}$") {
            set beresp.uncacheable = true;
            set beresp.ttl = 1h;
            return (deliver);
        }
    }
}
