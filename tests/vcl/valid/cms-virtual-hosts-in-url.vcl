vcl 4.0;

import directors;

backend zope1 { .host = "192.0.2.31"; .port = "8081"; .max_connections = 4; }
backend zope2 { .host = "192.0.2.32"; .port = "8081"; .max_connections = 4; }
backend zeo_admin { .host = "192.0.2.33"; .port = "8080"; }

acl purge { "192.0.2.0"/24; "127.0.0.1"; }

sub vcl_init {
    new cluster = directors.hash();
    cluster.add_backend(zope1, 1.0);
    cluster.add_backend(zope2, 1.0);
}

sub vcl_recv {
    # Editors keep to one server; the cookie of their session says which.
    if (req.http.Cookie ~ "__ac=") {
        set req.http.X-Editor = "yes";
        set req.backend_hint = cluster.backend(req.http.Cookie);
    } else {
        unset req.http.X-Editor;
        set req.backend_hint = cluster.backend(req.url);
    }

    if (req.http.host == "admin.example.org") {
        set req.backend_hint = zeo_admin;
        set req.url = "/VirtualHostBase/https/" + req.http.host + ":443/VirtualHostRoot" + req.url;
        return (pass);
    }
    set req.url = "/VirtualHostBase/https/www.example.org:443/site/VirtualHostRoot" + req.url;

    if (req.method == "PURGE") {
        if (client.ip !~ purge) {
            return (synth(405, "No purge from here"));
        }
        return (purge);
    }
    if (req.http.X-Editor) {
        return (pass);
    }
}

sub vcl_backend_response {
    if (beresp.http.X-Cache-Rule ~ "^terse") {
        set beresp.ttl = 5m;
    }
    if (!beresp.http.Cache-Control && !beresp.http.Expires) {
        set beresp.uncacheable = true;
        set beresp.ttl = 2m;
    }
}
