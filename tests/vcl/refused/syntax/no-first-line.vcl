backend default { .host = "192.0.2.1"; }  # <- refused

sub vcl_recv {
    unset req.http.Cookie;
}
