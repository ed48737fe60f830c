# decision: fetch-in-hit a hit cannot become a fetch: set req.hash_always_miss in vcl_recv, as here, or restart
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

acl staff { "10.23.0.0"/16; }

sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    unset req.http.Cookie;
    # Reload with the shift key: only the staff gets a fresh page.
    if (req.http.Cache-Control ~ "no-cache" && client.ip ~ staff) {
        set req.hash_always_miss = true;
    }
    return (hash);
}
