# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    set req.http.X-Forwarded-Host = req.http.host ":" server.port;
    set req.http.X-Trace = "id=" req.xid
                           ";host=" req.http.host   # as it came
                           ";url=" req.url;
    set req.url = "/site" regsub(req.url, "\?.*$", "") "?v=2";
    if (req.http.host !~ "^www\.") {
        error 750 "http://www." req.http.host req.url;
    }
}

sub vcl_deliver {
    set resp.http.X-Cache = "hits=" obj.hits " at " server.identity;
}

sub vcl_error {
    if (obj.status == 750) {
        set obj.http.Location = obj.response;
        set obj.status = 301;
        return (deliver);
    }
}
