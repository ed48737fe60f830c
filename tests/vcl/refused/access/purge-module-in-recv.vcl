# varnishd: accepts
vcl 4.1;

import purge;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (req.method == "PURGE") {
        set req.http.X-Count = purge.hard();  # <- refused
        return (synth(200));
    }
}
