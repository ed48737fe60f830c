# decision: esi-level vcl_backend_response cannot read `req.esi_level`; a header set in vcl_recv carries it
vcl 4.1;

backend symfony { .host = "127.0.0.1"; .port = "8000"; }

sub vcl_recv {
    set req.http.Surrogate-Capability = "proxy=ESI/1.0";
    unset req.http.X-Esi-Level;
    if (req.esi_level > 0) {
        set req.http.X-Esi-Level = req.esi_level;
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.http.Cookie ~ "PHPSESSID" && req.esi_level == 0) {
        return (pass);
    }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_backend_response {
    if (beresp.http.Surrogate-Control ~ "ESI/1.0") {
        unset beresp.http.Surrogate-Control;
        set beresp.do_esi = true;
    }
    if (bereq.http.X-Esi-Level && beresp.status >= 500) {
        set beresp.ttl = 1s;
    }
}
