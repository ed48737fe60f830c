vcl 4.1;

import cookie;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_req_cookie {
    # Runs before the built-in test of cookies.
    cookie.parse(req.http.Cookie);
    if (cookie.get_re("(UserID|Session)$") == "") {
        unset req.http.Cookie;
        return;
    }
    return (pass);
}
