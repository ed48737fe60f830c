vcl 4.1;

import std;
backend web  { .host = "10.19.0.1"; .port = "80"; }
backend auth { .host = "10.19.0.2"; .port = "8500"; }

# Each request asks the login service first and goes to the web server then.
sub vcl_recv {
    if (req.restarts == 0) {
        set req.http.X-Url = req.url;
        set req.url = "/check";
        set req.backend_hint = auth;
        return (pass);
    }
    set req.url = req.http.X-Url;
    unset req.http.X-Url;
    set req.backend_hint = web;
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    return (hash);
}

sub vcl_deliver {
    if (req.restarts == 0) {
        if (resp.status != 200) {
            std.log("login service: " + resp.status + " " + resp.reason);
            set resp.status = 401;
            return (deliver);
        }
        set req.http.X-User = resp.http.X-User;
        return (restart);
    }
    unset resp.http.X-User;
}
