vcl 4.1;

import std;

backend default { .host = "192.0.2.1"; }

sub log_age {
    std.log("age " + obj.age);  # <- refused
}

sub vcl_hit { call log_age; }

sub vcl_pass { call log_age; }
