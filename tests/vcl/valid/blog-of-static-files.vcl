vcl 4.1;

# Pages are written to files; the file server is the backend.
backend files { .host = "127.0.0.1:8000"; }

sub vcl_recv {
    unset req.http.Cookie;
    unset req.http.Authorization;
    if (req.url ~ "/$") {
        set req.url += "index.html";
    } elif (req.url !~ "\.[a-z0-9]{2,5}$") {
        set req.url += "/index.html";
    }
}

sub vcl_backend_response {
    set beresp.ttl = 365d;
    set beresp.grace = 1y;
    unset beresp.http.Set-Cookie;
}

sub vcl_deliver {
    # Browsers ask again; only this cache keeps the pages for long.
    set resp.http.Cache-Control = "public, max-age=0, must-revalidate";
}
