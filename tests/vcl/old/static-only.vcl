# vcl 2
backend static {
        .host = "10.0.3.3";
        .port = "81";
}

sub vcl_recv {
        // nothing here has a cookie
        remove req.http.cookie;
        remove req.http.authorization;
        if (req.request == "POST") {
                error 405 "Nothing to post here";
        }
        return (lookup);
}

sub vcl_fetch {
        remove beresp.http.set-cookie;
        set beresp.ttl = 6h;
        return (deliver);
}

sub vcl_error {
        synthetic {"<h1>Error "} obj.status {"</h1>"};
        return (deliver);
}
