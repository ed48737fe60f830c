vcl 4.0;

backend default { .host = "192.0.2.172"; .port = "80"; }

sub vcl_recv {
    if (req.http.Range ~ "bytes=") {
        set req.http.X-Range = req.http.Range;
    }
}

sub vcl_hash {
    if (req.http.X-Range) {
        hash_data(req.http.X-Range);
        unset req.http.Range;
    }
}

sub vcl_backend_fetch {
    if (bereq.http.X-Range) {
        set bereq.http.Range = bereq.http.X-Range;
        unset bereq.http.X-Range;
    }
}

sub vcl_backend_response {
    if (bereq.http.Range && beresp.status == 206) {
        set beresp.ttl = 10m;
    }
}
