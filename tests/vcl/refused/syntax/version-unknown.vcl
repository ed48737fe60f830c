vcl 4.2;  # <- refused

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    unset req.http.Cookie;
}
