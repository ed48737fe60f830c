# mend: bereq.url
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_response {
    # Feeds change often.
    if (req.url ~ "^/feed/") { # <- LINE
        set beresp.ttl = 60s;
        set beresp.grace = 5m;
    }
    if (beresp.status >= 500) {
        std.log("backend error " + beresp.status);
        set beresp.ttl = 1s;
    }
}
