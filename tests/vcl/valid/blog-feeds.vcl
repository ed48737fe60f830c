vcl 4.0;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.url ~ "^/(feed|rss|atom)(\.xml)?/?($|\?)") {
        # Readers of feeds add what they like to the URL.
        set req.url = "/feed";
        unset req.http.Cookie;
        unset req.http.Accept-Language;
        unset req.http.Authorization;
    }
}

sub vcl_backend_response {
    if (bereq.url == "/feed") {
        set beresp.ttl = 30m;
        set beresp.grace = 12h;
        set beresp.do_gzip = true;
        unset beresp.http.Vary;
        unset beresp.http.Set-Cookie;
    }
}
