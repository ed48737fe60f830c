vcl 4.1;

backend default { .host = "192.0.2.1"; }

set req.http.X-One = "1";  # <- refused

sub vcl_recv {
    unset req.http.Cookie;
}
