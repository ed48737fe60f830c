vcl 4.1;

# Needs `vcl_backend_refresh` and `obj_stale`.

import std;

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_backend_refresh {
    if (!obj_stale.is_valid) {
        return (retry);
    }
    if (obj_stale.age > 30d || obj_stale.hits == 0) {
        std.log("stored at " + obj_stale.time + " with " + obj_stale.http.ETag);
        return (abandon);
    }
    if (beresp.http.X-Replace) {
        return (obj_stale);
    }
    set beresp.ttl = obj_stale.ttl + 1h;
    return (merge);
}

sub vcl_backend_response {
    if (beresp.status == 200) {
        set beresp.keep = 30d;
    }
}
