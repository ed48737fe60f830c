vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (req.http.X-Again) {
        set req.restarts = 0;  # <- refused
    }
}
