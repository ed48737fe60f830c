vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_deliver {
    if (resp.status == 404) {
        set resp.body = "Nothing here";  # <- refused
    }
}
