# mend: std.querysort
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    # The order of parameters makes no difference.
    set req.url = std.query_sort(req.url); # <- LINE
    if (req.url ~ "\?$") {
        set req.url = regsub(req.url, "\?$", "");
    }
}
