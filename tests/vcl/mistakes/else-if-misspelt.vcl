# mend: else
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_response {
    if (beresp.status == 404) {
        set beresp.ttl = 30s;
    } esle if (beresp.status == 301) { # <- LINE
        set beresp.ttl = 1h;
    }
    unset beresp.http.X-Powered-By;
}
