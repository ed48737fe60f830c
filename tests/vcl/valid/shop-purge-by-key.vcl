vcl 4.1;

import std;
import xkey;

backend default {
    .host = "192.0.2.20";
    .port = "8000";
}

acl invalidators {
    "127.0.0.1";
    "192.0.2.20";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ invalidators) {
            return (synth(403, "Forbidden"));
        }
        if (!req.http.Xkey-Purge) {
            return (purge);
        }
        set req.http.X-Gone = xkey.purge(req.http.Xkey-Purge);
        return (synth(200, "Keys done, objects: " + req.http.X-Gone));
    }
}

sub vcl_deliver {
    if (client.ip !~ invalidators) {
        unset resp.http.xkey;
    }
}
