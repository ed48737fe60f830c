vcl 4.1;

# An application server on the same machine.
backend app {
    .path = "/run/app/http.sock";
    .host_header = "app.example.com";
    .first_byte_timeout = 90s;
    .max_connections = 64;
}

sub vcl_backend_error {
    # A socket that is missing gives this: say so.
    set beresp.http.X-Reason = "no application on " + beresp.backend.name;
}
