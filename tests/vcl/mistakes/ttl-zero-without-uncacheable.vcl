# mend: beresp.uncacheable
# varnishd: accepts
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_response {
    # Carts are personal.
    if (bereq.url ~ "^/cart") {
        set beresp.ttl = 0s; # <- LINE
        return (deliver);
    }
    unset beresp.http.Server;
}
