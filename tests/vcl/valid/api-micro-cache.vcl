vcl 4.1;

backend api { .host = "127.0.0.1"; .port = "3000"; .connect_timeout = 0.3s; }

sub vcl_recv {
    if (req.method != "GET") {
        return (pass);
    }
    unset req.http.Cookie;
}

sub vcl_backend_response {
    if (beresp.status == 200 && beresp.http.Content-Type ~ "^application/(problem\+)?json") {
        # One second is enough to answer a crowd once.
        set beresp.ttl = 1s;
        set beresp.grace = 10s;
        return (deliver);
    }
    return (pass(1s));
}
