# vcl 3
backend eu1 { .host = "198.51.100.11"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }
backend eu2 { .host = "198.51.100.12"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }
backend us1 { .host = "203.0.113.11"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }
backend us2 { .host = "203.0.113.12"; .port = "80"; .probe = { .url = "/"; .interval = 5s; } }

director eu round-robin { { .backend = eu1; } { .backend = eu2; } }
director us round-robin { { .backend = us1; } { .backend = us2; } }

sub vcl_recv {
    # Near first. If nobody is there, far.
    if (server.identity ~ "^eu-") {
        set req.backend = eu;
        if (!req.backend.healthy) {
            set req.backend = us;
        }
    } else {
        set req.backend = us;
        if (!req.backend.healthy) {
            set req.backend = eu;
        }
    }
    if (req.request == "POST" || req.request == "PUT" || req.request == "DELETE") {
        set req.backend = eu; // the master is in Europe
        return (pass);
    }
}
