vcl 4.1;

backend default { .host = "192.0.2.201"; .port = "8080"; }

sub vcl_recv {
    if (req.method == "OPTIONS" && req.http.Origin && req.http.Access-Control-Request-Method) {
        return (synth(204));
    }
}

sub cors {
    if (req.http.Origin ~ "^https://([a-z0-9-]+\.)*example\.(com|org)$") {
        set resp.http.Access-Control-Allow-Origin = req.http.Origin;
        set resp.http.Access-Control-Allow-Credentials = "true";
        if (resp.http.Vary) {
            set resp.http.Vary += ", Origin";
        } else {
            set resp.http.Vary = "Origin";
        }
    }
}

sub vcl_deliver {
    call cors;
}

sub vcl_synth {
    if (resp.status == 204) {
        call cors;
        set resp.http.Access-Control-Allow-Methods = "GET, POST, PUT, DELETE";
        set resp.http.Access-Control-Allow-Headers = req.http.Access-Control-Request-Headers;
        set resp.http.Access-Control-Max-Age = "86400";
        return (deliver);
    }
}
