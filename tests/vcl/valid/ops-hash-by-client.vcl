vcl 4.0;

import directors;
import std;

backend app1 { .host = "192.0.2.109"; .port = "8080"; }
backend app2 { .host = "192.0.2.110"; .port = "8080"; }

sub vcl_init {
    new sticky = directors.hash();
    sticky.add_backend(app1, 1);
    sticky.add_backend(app2, 1.5);
}

sub vcl_recv {
    if (req.http.Cookie ~ "sid=") {
        set client.identity = regsub(req.http.Cookie, "^(?:.*; )?sid=([^;]+).*$", "\1");
    } else {
        set client.identity = client.ip;
    }
    set req.backend_hint = sticky.backend(client.identity);
    std.log("identity " + client.identity + " -> " + req.backend_hint);
}
