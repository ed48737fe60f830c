# vcl 3
backend desktop { .host = "10.5.0.1"; .port = "80"; }
backend mobile  { .host = "10.5.0.2"; .port = "80"; }

sub detect_device {
    # first the tablets: they say "Android" too
    remove req.http.X-Device;
    if (req.http.User-Agent ~ "(?i)ipad|android 3|xoom|playbook") {
        set req.http.X-Device = "tablet";
    } elseif (req.http.User-Agent ~ "(?i)iphone|ipod|android|blackberry|symbian|windows ce|opera mini") {
        set req.http.X-Device = "mobile";
    } else {
        set req.http.X-Device = "desktop";
    }
    // visitors may choose
    if (req.http.Cookie ~ "(^|; )view=full") {
        set req.http.X-Device = "desktop";
    }
}

sub vcl_recv {
    call detect_device;
    if (req.http.X-Device == "mobile") {
        set req.backend = mobile;
    } else {
        set req.backend = desktop;
    }
    if (req.request != "GET" && req.request != "HEAD") {
        return (pass);
    }
    remove req.http.Cookie;
    return (lookup);
}

sub vcl_hash {
    hash_data(req.http.X-Device);
}

sub vcl_fetch {
    if (req.http.X-Device && !beresp.http.Vary ~ "User-Agent") {
        set beresp.http.X-Seen-As = req.http.X-Device;
    }
}
