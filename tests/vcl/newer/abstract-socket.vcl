vcl 4.1;

# Needs abstract sockets in `.path`.

backend app {
    .path = "@app-http";
    .host_header = "app.example.com";
}

sub vcl_recv {
    set req.backend_hint = app;
}
