vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
}

sub vcl_backend_response {
    # The application says 200 when its database is away.
    if (beresp.http.X-Database == "down") {
        return (error(503, "Database down"));
    }
    if (beresp.status == 403 && bereq.url ~ "^/files/") {
        return (error(404, "Not found"));
    }
    if (bereq.method == "HEAD") {
        set beresp.ttl = 10s;
    }
}
