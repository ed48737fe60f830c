vcl 4.1;

import std;

backend default { .host = "192.0.2.211"; .port = "8080"; }

/* The server answers a batch with includes of the single answers. */
sub vcl_backend_response {
    if (bereq.url ~ "^/batch\?" && beresp.http.Content-Type == "application/json") {
        set beresp.filters = "esi";
        set beresp.ttl = 0s;
    } elsif (beresp.http.Content-Encoding == "gzip") {
        set beresp.filters = "testgunzip";
    }
}

sub vcl_deliver {
    if (req.esi_level == 0 && req_top.url ~ "^/batch\?") {
        std.timestamp("batch");
        set resp.http.X-Filters = resp.filters;
    }
    if (!obj.can_esi || resp.is_streaming) {
        set resp.http.X-Plain = "1";
    }
}
