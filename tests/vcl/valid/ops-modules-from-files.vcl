vcl 4.1;

import std from "libvmod_std.so";
import directors from "libvmod_directors.so";
import vsthrottle as throttle from "libvmod_vsthrottle.so";
import cookie as biscuits;
import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_init {
    new one = directors.round_robin();
    one.add_backend(default);
}

sub vcl_recv {
    set req.backend_hint = one.backend();
    biscuits.parse(req.http.Cookie);
    if (biscuits.isset("vip") || !throttle.is_denied(client.identity, 5, 1s)) {
        std.log("ok");
    } else {
        return (synth(429));
    }
}
