vcl 4.1;

import cookie;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Cookie) {
        cookie.parse(req.http.Cookie);
        cookie.filter_re("^(_ga|_gid|_pk_|__utm)");
        cookie.delete("has_js");
        set req.http.Cookie = cookie.get_string();
        if (cookie.get_re("^session_[0-9]+$") != "") {
            return (pass);
        }
        unset req.http.Cookie;
    }
}

sub vcl_deliver {
    if (!req.http.Cookie) {
        cookie.clean();
        cookie.set("seen", "1");
        set resp.http.Set-Cookie = cookie.get_string() + "; Path=/; Expires=" + cookie.format_date(now, 30d);
    }
}
