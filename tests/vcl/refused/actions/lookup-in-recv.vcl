vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    unset req.http.Cookie;
    return (lookup);  # <- refused
}
