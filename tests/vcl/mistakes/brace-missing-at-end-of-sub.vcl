# mend: }
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_response { # <- LINE
    unset beresp.http.Server;
    if (beresp.http.Content-Type ~ "text|json|javascript") {
        set beresp.do_gzip = true;
    }

sub vcl_deliver {
    unset resp.http.Via;
    unset resp.http.X-Varnish;
}
