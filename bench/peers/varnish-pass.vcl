vcl 4.1;

backend origin {
    .host = "127.0.0.1";
    .port = "@{origin}";
}

sub vcl_recv {
    return (pass);
}

sub vcl_backend_response {
    # Varnish streams a body of unknown length to an HTTP/1.0 client as "keep-alive", then closes: ab -k gives up.
    if (!beresp.http.Content-Length) {
        set beresp.do_stream = false;
    }
}
