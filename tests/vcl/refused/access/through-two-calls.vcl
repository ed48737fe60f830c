vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub inner {
    unset beresp.http.Set-Cookie;  # <- refused
}

sub outer {
    set req.http.X-Outer = "1";
    call inner;
}

sub vcl_recv {
    call outer;
}
