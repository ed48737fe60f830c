vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_deliver {
    if (resp.http.X-Gone) {
        set resp.status = 410.0;  # <- refused
    }
}
