vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_fetch {  # <- refused
    set req.http.X-Old = "1";
}
