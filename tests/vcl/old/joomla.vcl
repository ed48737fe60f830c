# vcl 3
backend default { .host = "127.0.0.1"; .port = "8181"; }

sub vcl_recv {
if (req.request != "GET" && req.request != "HEAD") {
return (pass);
}
if (req.http.Authorization) { return (pass); }
# components that know their visitor
if (req.url ~ "/administrator" || req.url ~ "/component/(banners|users|contact)") { return (pass); }
if (req.http.X-Requested-With == "XMLHttpRequest") { return (pass); }
unset req.http.Cookie;
return (lookup);
}

sub vcl_fetch {
if (req.url ~ "/administrator" || req.url ~ "/component/(banners|users|contact)") { return (hit_for_pass); }
remove beresp.http.Set-Cookie;
if (beresp.ttl < 180s) { set beresp.ttl = 180s; } # three minutes at least
return (deliver);
}

sub vcl_deliver {
remove resp.http.X-Logged-In;
remove resp.http.Server;
}
