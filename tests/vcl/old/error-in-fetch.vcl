# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.request != "GET" && req.request != "HEAD") {
        return (pass);
    }
}

sub vcl_fetch {
    # The application says 200 when its database is away.
    if (beresp.http.X-Database == "down") {
        error 503 "Database down";
    }
    if (beresp.status == 403 && req.url ~ "^/files/") {
        error 404 "Not found";
    }
    if (req.request == "HEAD") {
        set beresp.ttl = 10s;
    }
}
