vcl 4.1;

import std;
import directors;

backend eu1 { .host = "198.51.100.11"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }
backend eu2 { .host = "198.51.100.12"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }
backend us1 { .host = "203.0.113.11"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }
backend us2 { .host = "203.0.113.12"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }

sub vcl_init {
    new eu = directors.round_robin();
    eu.add_backend(eu1);
    eu.add_backend(eu2);
    new us = directors.round_robin();
    us.add_backend(us1);
    us.add_backend(us2);
}

sub vcl_recv {
    # Near first. If nobody is there, far.
    if (server.identity ~ "^eu-") {
        set req.backend_hint = eu.backend();
        if (!std.healthy(req.backend_hint)) {
            set req.backend_hint = us.backend();
        }
    } else {
        set req.backend_hint = us.backend();
        if (!std.healthy(req.backend_hint)) {
            set req.backend_hint = eu.backend();
        }
    }
    if (req.method == "POST" || req.method == "PUT" || req.method == "DELETE") {
        set req.backend_hint = eu.backend(); // the master is in Europe
        return (pass);
    }
}
