vcl 4.0;

import std;

backend default { .host = "192.0.2.179"; .port = "80"; .first_byte_timeout = 20s; }

sub vcl_backend_response {
    if (std.integer(beresp.http.Content-Length, 0) >= 104857600) {
        set beresp.do_stream = true;
        set beresp.do_gunzip = false;
        set beresp.uncacheable = true;
        set beresp.ttl = 1h;
        return (deliver);
    }
    if (std.real(beresp.http.X-Popularity, 0.0) > 0.75) {
        set beresp.ttl = beresp.ttl * 1.5;
    }
}

sub vcl_miss {
    if (req.url ~ "\.iso$" && req.http.X-Prefetch) {
        return (synth(202, "Later"));
    }
}

sub vcl_hit {
    if (obj.http.X-Withdrawn) {
        return (synth(410, "Withdrawn"));
    }
}
