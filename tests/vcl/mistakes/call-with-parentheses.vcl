# mend: call clean_cookies;
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub clean_cookies {
    set req.http.Cookie = regsuball(req.http.Cookie, "(^|;\s*)(_ga|_gid|_fbp)=[^;]*", "");
    if (req.http.Cookie == "") {
        unset req.http.Cookie;
    }
}

sub vcl_recv {
    if (req.http.Cookie) {
        call clean_cookies(); # <- LINE
    }
}
