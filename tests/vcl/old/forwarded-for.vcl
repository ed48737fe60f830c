# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.restarts == 0) {
        if (req.http.X-Forwarded-For) {
            set req.http.X-Forwarded-For = req.http.X-Forwarded-For + ", " + client.ip;
        } else {
            set req.http.X-Forwarded-For = client.ip;
        }
    }
    set req.http.X-Forwarded-Port = client.port;
    if (req.request != "GET" && req.request != "HEAD") {
        return (pass);
    }
    return (lookup);
}

sub vcl_pipe {
    set bereq.http.Connection = "close";
}
