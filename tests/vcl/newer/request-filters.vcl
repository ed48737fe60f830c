vcl 4.1;

# Needs `req.filters` and `bereq.filters`.

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Content-Encoding == "gzip" && req.method == "POST") {
        set req.filters = "gunzip";
        unset req.http.Content-Encoding;
    }
}

sub vcl_backend_fetch {
    if (bereq.filters != "") {
        set bereq.http.X-Filters = bereq.filters;
    }
}
