vcl 4.1;

import std;

// written on a PC
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv
{
    if (req.method == "GET" || req.method == "HEAD")
    {
        // the port helps the firewall's people
        set req.http.X-Client = client.ip + ":" + std.port(client.ip);
        if (std.port(server.ip) != 80) { return (synth(403, "Wrong port")); }
        unset req.http.Cookie;
        return (hash);
    }
    return (pass);
}

sub vcl_backend_response
{
    if (bereq.method == "GET" && beresp.ttl > 1h)
    {
        set beresp.ttl = 1h;
    }
}
