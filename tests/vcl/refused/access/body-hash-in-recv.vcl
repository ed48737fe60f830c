# varnishd: accepts
vcl 4.1;

import std;
import bodyaccess;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (std.cache_req_body(8KB)) {
        bodyaccess.hash_req_body();  # <- refused
    }
}
