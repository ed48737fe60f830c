# mend: }
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.http.Upgrade ~ "(?i)websocket") { # <- LINE
        return (pipe);

    if (req.url ~ "^/user") {
        return (pass);
    }
}

sub vcl_pipe {
    if (req.http.upgrade) {
        set bereq.http.upgrade = req.http.upgrade;
        set bereq.http.connection = req.http.connection;
    }
}
