vcl 4.1;

# Needs `bereq.retry_connect`.

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_backend_fetch {
    if (bereq.method != "GET" && bereq.method != "HEAD") {
        set bereq.retry_connect = false;
    }
}
