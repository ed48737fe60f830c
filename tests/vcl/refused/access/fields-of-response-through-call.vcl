vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub mark {
    set resp.http.X-Marked = "1";  # <- refused
}

sub vcl_deliver {
    call mark;
}

sub vcl_recv {
    call mark;
}
