vcl 4.1;

backend default { .host = "198.51.100.30"; .port = "8088"; }

sub vcl_backend_response {
    if (bereq.url ~ "^/api/stock/") {
        // Stock may be ten seconds old, and a minute if the system is down.
        set beresp.ttl = 10s;
        set beresp.grace = 1m;
        set beresp.keep = 0s;
    } elif (bereq.url ~ "^/api/prices/") {
        set beresp.ttl = 1m;
        set beresp.grace = beresp.ttl * 2;
    } elseif (bereq.url ~ "^/api/") {
        set beresp.ttl = 0.5s;
        set beresp.grace = 500ms;
    } else {
        set beresp.ttl += 1h;
    }
}
