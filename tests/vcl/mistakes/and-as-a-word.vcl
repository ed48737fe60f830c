# mend: &&
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.method == "GET" and req.url ~ "^/assets/") { # <- LINE
        unset req.http.Cookie;
        return (hash);
    }
}

sub vcl_backend_response {
    if (bereq.url ~ "^/assets/" && beresp.status == 200) {
        set beresp.ttl = 1d;
    }
}
