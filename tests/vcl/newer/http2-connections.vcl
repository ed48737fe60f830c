vcl 4.1;

# Needs the module `h2`.

import h2;

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_recv {
    if (h2.is()) {
        set req.http.X-Protocol = "2";
    }
}
