vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub tidy { unset req.http.Cookie; }

sub tidy { unset req.http.Proxy; }  # <- refused

sub vcl_recv { call tidy; }
