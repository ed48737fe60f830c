vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8181"; }

sub vcl_recv {
if (req.method != "GET" && req.method != "HEAD") {
return (pass);
}
if (req.http.Authorization) { return (pass); }
# components that know their visitor
if (req.url ~ "/administrator" || req.url ~ "/component/(banners|users|contact)") { return (pass); }
if (req.http.X-Requested-With == "XMLHttpRequest") { return (pass); }
unset req.http.Cookie;
return (hash);
}

sub vcl_backend_response {
if (bereq.url ~ "/administrator" || bereq.url ~ "/component/(banners|users|contact)") {
set beresp.uncacheable = true;
set beresp.ttl = 120s;
return (deliver);
}
unset beresp.http.Set-Cookie;
if (beresp.ttl < 180s) { set beresp.ttl = 180s; } # three minutes at least
return (deliver);
}

sub vcl_deliver {
unset resp.http.X-Logged-In;
unset resp.http.Server;
}
