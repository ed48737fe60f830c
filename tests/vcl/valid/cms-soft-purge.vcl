vcl 4.1;

import purge;

backend default { .host = "192.0.2.58"; .port = "8080"; }

acl cms { "192.0.2.58"; }

sub vcl_recv {
    if (req.method == "PURGE" || req.method == "EXPIRE") {
        if (client.ip !~ cms) {
            return (synth(405));
        }
        return (hash);
    }
}

sub expire_or_purge {
    if (req.method == "EXPIRE") {
        set req.http.X-Count = purge.soft(0s, 1h, keep = 1d);
    } else {
        set req.http.X-Count = purge.hard();
    }
    return (synth(200, "objects: " + req.http.X-Count));
}

sub vcl_hit {
    if (req.method == "PURGE" || req.method == "EXPIRE") { call expire_or_purge; }
}

sub vcl_miss {
    if (req.method == "PURGE" || req.method == "EXPIRE") { call expire_or_purge; }
}
