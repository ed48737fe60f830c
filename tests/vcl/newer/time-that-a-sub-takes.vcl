vcl 4.1;

# Needs `std.now`, `std.timed_call` and subs as arguments.

import std;

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub rules {
    set req.url = regsuball(req.url, "([?&])utm_[a-z]+=[^&]*", "\1");
}

sub vcl_recv {
    set req.http.X-Took = std.timed_call(rules);
    std.log("from " + now + " to " + std.now());
}
