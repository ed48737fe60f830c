# mend: }
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/private/") {
        return (pass);
    }
    unset req.http.Accept-Language;
}

} # <- LINE

sub vcl_deliver {
    set resp.http.X-Served-By = server.hostname;
}
