# decision: inline-c the C code draws a random number; std.random does it
vcl 4.1;

import std;

/*
 * Half of the visitors see the new front page.
 */
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Cookie ~ "group=[ab]") {
        set req.http.X-Group = regsub(req.http.Cookie, "^.*group=([ab]).*$", "\1");
    } else {
        if (std.random(0, 2) < 1.0) {
            set req.http.X-Group = "a";
        } else {
            set req.http.X-Group = "b";
        }
    }
    unset req.http.Cookie;
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    return (hash);
}

sub vcl_hash {
    hash_data(req.http.X-Group);
}

sub vcl_deliver {
    set resp.http.Set-Cookie = "group=" + req.http.X-Group + "; path=/";
}
