vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (req.http.Content-Length > 100000) {  # <- refused
        return (pass);
    }
}
