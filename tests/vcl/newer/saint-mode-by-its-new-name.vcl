vcl 4.1;

# Needs `denylist` of a newer `saintmode`.

import saintmode;

backend node { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_init {
    new sm = saintmode.saintmode(node, 5);
}

sub vcl_recv {
    set req.backend_hint = sm.backend();
    set req.http.X-Denied = sm.denylist_count();
}

sub vcl_backend_response {
    if (beresp.status == 500) {
        saintmode.denylist(20s);
        return (retry);
    }
}
