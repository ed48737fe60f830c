vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    std.collect("Cookie", "; ");  # <- refused
}
