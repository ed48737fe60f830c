vcl 4.1;

backend ghost { .host = "127.0.0.1"; .port = "2368"; .host_header = "blog.example.net"; }

sub vcl_recv {
    if (req.url ~ "^/(ghost|p|members/api)(/|$)") {
        return (pass);
    }
    if (req.http.Cookie !~ "ghost-(admin|members)") {
        unset req.http.Cookie;
    }
}

sub vcl_backend_response {
    if (bereq.url !~ "^/(ghost|p|members)/" && beresp.status < 400) {
        unset beresp.http.Set-Cookie;
        set beresp.ttl = 5m;
        set beresp.grace = 1d;
    }
}
