vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_deliver {
    if (now - req.time > 2) {  # <- refused
        set resp.http.X-Slow = "1";
    }
}
