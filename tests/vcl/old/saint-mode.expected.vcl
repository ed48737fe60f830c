# decision: saint-mode the module saintmode keeps its list for each backend; its threshold is an argument now
vcl 4.1;

import saintmode;

backend default {
    .host = "10.20.0.1";
    .port = "80";
}

sub vcl_init {
    new default_saint = saintmode.saintmode(default, 10);
}

sub vcl_recv {
    set req.backend_hint = default_saint.backend();
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    return (hash);
}

sub vcl_backend_response {
    # This URL is not asked for again for ten seconds.
    if (beresp.status == 500) {
        saintmode.blacklist(10s);
        return (retry);
    }
    set beresp.grace = 5m;
}
