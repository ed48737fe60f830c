vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_hit {
    set resp.http.X-Cache = "HIT";  # <- refused
}
