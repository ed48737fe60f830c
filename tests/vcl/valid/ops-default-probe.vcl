vcl 4.1;

probe default {
    .url = "/status?from=cache";
    .interval = 3s;
    .timeout = 0.8s;
    .window = 10;
    .threshold = 8;
    .initial = 9;
    .expected_response = 200;
}

probe slow {
    .interval = 1m;
    .timeout = 20s;
}

// The first has the default probe; the last has one of its own.
backend a { .host = "192.0.2.118"; }
backend b { .host = "192.0.2.119"; .probe = slow; }
backend c { .host = "192.0.2.120"; .probe = { .url = "/c"; } }

sub vcl_recv {
    if (req.http.host == "b.example.com") {
        set req.backend_hint = b;
    } elsif (req.http.host == "c.example.com") {
        set req.backend_hint = c;
    }
}
