vcl 4.1;

import std;

backend default { .host = "192.0.2.180"; .port = "80"; }

sub vcl_recv    { unset req.http.X-Status; }
sub vcl_hit     { set req.http.X-Status = "hit; ttl=" + std.integer(duration=obj.ttl); }
sub vcl_miss    { set req.http.X-Status = "fwd=uri-miss"; }
sub vcl_pass    { set req.http.X-Status = "fwd=request"; }
sub vcl_pipe    { set req.http.X-Status = "fwd=method"; }
sub vcl_synth   { set req.http.X-Status = "detail=synth"; call status; }
sub vcl_deliver { call status; }

sub status {
    if (!req.http.X-Status) {
        set req.http.X-Status = "detail=unknown";
    }
    set resp.http.Cache-Status = server.hostname + "; " + req.http.X-Status;
}
