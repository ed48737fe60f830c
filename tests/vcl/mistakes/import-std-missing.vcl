# mend: import std;
vcl 4.1;

# The application on this machine.
backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    unset req.http.X-Trace;
    set req.url = std.querysort(req.url); # <- LINE
}

sub vcl_deliver {
    set resp.http.X-Url = req.url;
}
