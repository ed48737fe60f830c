# vcl 3
backend symfony { .host = "127.0.0.1"; .port = "8000"; }

sub vcl_recv {
    set req.http.Surrogate-Capability = "proxy=ESI/1.0";
    if (req.request != "GET" && req.request != "HEAD") {
        return (pass);
    }
    if (req.http.Cookie ~ "PHPSESSID" && req.esi_level == 0) {
        return (pass);
    }
    remove req.http.Cookie;
    return (lookup);
}

sub vcl_fetch {
    if (beresp.http.Surrogate-Control ~ "ESI/1.0") {
        remove beresp.http.Surrogate-Control;
        set beresp.do_esi = true;
    }
    if (req.esi_level > 0 && beresp.status >= 500) {
        set beresp.ttl = 1s;
    }
}
