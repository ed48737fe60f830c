# mend: 60s
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_response {
    # Archive pages may stay a little longer than the application says.
    if (bereq.url ~ "^/archive/" && beresp.ttl > 0s) {
        set beresp.ttl += 60; # <- LINE
    }
}
