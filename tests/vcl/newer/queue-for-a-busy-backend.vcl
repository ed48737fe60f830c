vcl 4.1;

# Needs `.wait_limit` and `.wait_timeout`.

backend default {
    .host = "192.0.2.1";
    .port = "8080";
    .max_connections = 20;
    .wait_limit = 50;
    .wait_timeout = 2s;
}

sub vcl_backend_error {
    set beresp.http.Retry-After = "2";
}
