vcl 4.1;

import cookie;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    cookie.set("seen");  # <- refused
    set req.http.Cookie = cookie.get_string();
}
