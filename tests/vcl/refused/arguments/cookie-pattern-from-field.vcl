vcl 4.1;

import cookie;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    cookie.parse(req.http.Cookie);
    cookie.filter_re(req.http.X-Drop);  # <- refused
}
