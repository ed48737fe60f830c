sub vcl_recv {
    unset req.http.Proxy;
    unset req.http.X-Cache;
}
