vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_deliver {
    if (obj.http.X-Debug) {  # <- refused
        set resp.http.X-Debug = "1";
    }
}
