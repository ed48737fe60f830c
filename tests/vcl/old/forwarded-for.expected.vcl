# decision: forwarded-for the client's address is in X-Forwarded-For before vcl_recv now; the lines that append it would append it twice
vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    set req.http.X-Forwarded-Port = std.port(client.ip);
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    return (hash);
}

sub vcl_pipe {
    set bereq.http.Connection = "close";
}
