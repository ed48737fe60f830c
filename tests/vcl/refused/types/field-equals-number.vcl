vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (req.http.X-Level == 2) {  # <- refused
        return (pass);
    }
}
