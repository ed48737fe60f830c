# vcl 3
/*
 * Half of the visitors see the new front page.
 */
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Cookie ~ "group=[ab]") {
        set req.http.X-Group = regsub(req.http.Cookie, "^.*group=([ab]).*$", "\1");
    } else {
        C{
            if (random() % 2 == 0)
                VRT_SetHdr(sp, HDR_REQ, "\010X-Group:", "a", vrt_magic_string_end);
            else
                VRT_SetHdr(sp, HDR_REQ, "\010X-Group:", "b", vrt_magic_string_end);
        }C
    }
    remove req.http.Cookie;
    if (req.request != "GET" && req.request != "HEAD") { return (pass); }
    return (lookup);
}

sub vcl_hash {
    hash_data(req.http.X-Group);
}

sub vcl_deliver {
    set resp.http.Set-Cookie = "group=" + req.http.X-Group + "; path=/";
}
