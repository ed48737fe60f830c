# vcl 3
import std;
backend web  { .host = "10.19.0.1"; .port = "80"; }
backend auth { .host = "10.19.0.2"; .port = "8500"; }

# Each request asks the login service first and goes to the web server then.
sub vcl_recv {
    if (req.restarts == 0) {
        set req.http.X-Url = req.url;
        set req.url = "/check";
        set req.backend = auth;
        return (pass);
    }
    set req.url = req.http.X-Url;
    remove req.http.X-Url;
    set req.backend = web;
    if (req.request != "GET" && req.request != "HEAD") { return (pass); }
    return (lookup);
}

sub vcl_deliver {
    if (req.restarts == 0) {
        if (resp.status != 200) {
            std.log("login service: " + resp.status + " " + resp.response);
            set resp.status = 401;
            return (deliver);
        }
        set req.http.X-User = resp.http.X-User;
        return (restart);
    }
    remove resp.http.X-User;
}
