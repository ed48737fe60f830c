vcl 4.1;

import std;

backend default {
    .host = "192.0.2.8";
}

sub strip_tracking {
    if (req.url !~ "\?") {
        return;
    }
    set req.url = regsuball(req.url, "(?<=[?&])(utm_[a-z_]+|gclid|fbclid|msclkid|_hs[a-z]+)=[^&]*&?", "");
    set req.url = regsub(req.url, "[?&]$", "");
    if (req.url ~ "\?") {
        set req.url = std.querysort(req.url);
    }
}

sub vcl_recv {
    # The full URL stays for the log.
    set req.http.X-Original-Url = req.url;
    call strip_tracking;
}

sub vcl_backend_fetch {
    unset bereq.http.X-Original-Url;
}
