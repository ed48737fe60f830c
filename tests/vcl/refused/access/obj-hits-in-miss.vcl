vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_miss {
    set req.http.X-Hits = obj.hits;  # <- refused
}
