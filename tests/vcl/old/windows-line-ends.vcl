# vcl 3
// written on a PC
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv
{
    if (req.request == "GET" || req.request == "HEAD")
    {
        // the port helps the firewall's people
        set req.http.X-Client = client.ip + ":" + client.port;
        if (server.port != 80) { error 403 "Wrong port"; }
        remove req.http.Cookie;
        return (lookup);
    }
    return (pass);
}

sub vcl_fetch
{
    if (req.request == "GET" && beresp.ttl > 1h)
    {
        set beresp.ttl = 1h;
    }
}
