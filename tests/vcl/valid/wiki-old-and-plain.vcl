vcl 4.0;
backend default { .host = "127.0.0.1"; .port = "8082"; }
sub vcl_recv {
 if (req.url ~ "action=(edit|login|diff|info)" || req.http.cookie ~ "MOIN_SESSION") {
  return(pass);
 }
 unset req.http.cookie;
 return(hash);
}
sub vcl_backend_response {
 set beresp.ttl = 5 m;
 set beresp.grace = 1 h;
 return(deliver);
}
