vcl 4.1;

backend full { .host = "192.0.2.21"; }
backend lite { .host = "192.0.2.22"; }

sub vcl_recv {
    if (req.url ~ "^/amp/" || req.url ~ "\?(.*&)?amp=1(&|$)" || req.http.Save-Data ~ "(?i)^on$") {
        set req.backend_hint = lite;
        set req.http.X-Lite = "1";
    } else {
        set req.backend_hint = full;
        unset req.http.X-Lite;
    }
}

sub vcl_hash {
    hash_data(req.url);
    hash_data(req.http.host);
    if (req.http.X-Lite) {
        hash_data("lite");
    }
    return (lookup);
}
