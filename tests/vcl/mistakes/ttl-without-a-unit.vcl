# mend: 120s
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_response {
    if (beresp.http.Set-Cookie) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120; # <- LINE
        return (deliver);
    }
    set beresp.grace = 2h;
}
