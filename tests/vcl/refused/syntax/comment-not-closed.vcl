vcl 4.1;

backend default { .host = "192.0.2.1"; }

/* The rules of the shop  # <- refused
sub vcl_recv {
    unset req.http.Cookie;
}
