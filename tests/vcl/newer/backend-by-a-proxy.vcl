vcl 4.1;

# Needs `.via` and `.authority`.

backend tls_wrapper {
    .path = "/run/tls/wrapper.sock";
}

backend origin {
    .via = tls_wrapper;
    .host = "203.0.113.10";
    .port = "443";
    .authority = "origin.example.com";
    .host_header = "origin.example.com";
}

sub vcl_recv {
    set req.backend_hint = origin;
}
