vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_deliver {
    set resp.http.X-Line = "-" * 40;  # <- refused
}
