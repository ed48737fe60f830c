# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

acl may_ban {
    "localhost";
    "192.168.77.0"/24; /* the editors' floor */
}

sub vcl_recv {
    if (req.request == "BAN") {
        if (!client.ip ~ may_ban) {
            error 405 "Not allowed";
        }
        ban_url(req.url);
        error 200 "Banned";
    }
    elsif (req.request == "BANALL") {
        if (!client.ip ~ may_ban) {
            error 405 "Not allowed";
        }
        ban("req.http.host ~ .");
        error 200 "Banned all";
    }
}

sub vcl_error {
    set obj.http.Content-Type = "text/plain";
    synthetic {"[ban] "} + obj.response;
    return (deliver);
}
