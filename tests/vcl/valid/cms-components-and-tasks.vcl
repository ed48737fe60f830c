vcl 4.0;
backend default { .host = "127.0.0.1"; .port = "8888"; }
acl office { "203.0.113.64"/27; }
sub vcl_recv {
  if (req.url ~ "^/administrator" && client.ip !~ office) { return (synth(404, "Not Found")); }
  if (req.url ~ "option=com_(users|mailto|contact)" || req.url ~ "task=" || req.url ~ "/component/") { return (pass); }
  if (req.http.X-Logged-In == "True") { return (pass); }
  unset req.http.Cookie;
}
sub vcl_backend_response {
  if (beresp.http.X-Logged-In == "False") { unset beresp.http.Set-Cookie; unset beresp.http.Pragma; set beresp.http.Cache-Control = "public"; set beresp.ttl = 180s; }
  if (beresp.status >= 500 && bereq.retries == 0) { return (retry); }
}
