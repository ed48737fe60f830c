vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (not req.http.Cookie) {  # <- refused
        return (hash);
    }
}
