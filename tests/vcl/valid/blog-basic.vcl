vcl 4.0;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "wp-(login|admin)" || req.url ~ "preview=true") {
        return (pass);
    }
    if (req.http.cookie ~ "wordpress_logged_in_|comment_author_|wp-postpass_") {
        return (pass);
    }
    unset req.http.cookie;
}

sub vcl_backend_response {
    if (bereq.url !~ "wp-(login|admin)") {
        unset beresp.http.set-cookie;
        if (beresp.ttl == 120s) {
            set beresp.ttl = 6h;
        }
    }
}
