vcl 4.1;

import std;
import bodyaccess;

backend graph { .host = "127.0.0.1"; .port = "4000"; }

sub vcl_recv {
    unset req.http.X-Body-Len;
    if (req.method == "POST" && req.url == "/graphql") {
        if (!std.cache_req_body(64KB)) {
            return (pass);
        }
        if (bodyaccess.rematch_req_body({"^\s*\{\s*"query"\s*:\s*"\s*mutation"}) == 1) {
            return (pass);
        }
        set req.http.X-Body-Len = bodyaccess.len_req_body();
        bodyaccess.log_req_body("query:", 120);
        return (hash);
    }
}

sub vcl_hash {
    if (req.http.X-Body-Len) {
        bodyaccess.hash_req_body();
    }
}

sub vcl_backend_fetch {
    if (bereq.http.X-Body-Len) {
        set bereq.method = "POST";
        unset bereq.http.X-Body-Len;
    }
}
