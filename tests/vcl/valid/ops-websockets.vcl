vcl 4.0;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Upgrade ~ "(?i)^websocket$") {
        return (pipe);
    }
}

sub vcl_pipe {
    if (req.http.Upgrade) {
        set bereq.http.Upgrade = req.http.Upgrade;
        set bereq.http.Connection = req.http.Connection;
    }
}
