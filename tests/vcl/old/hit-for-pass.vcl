# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.url ~ "^/(account|basket)") { return(pass); }
  unset req.http.Cookie;
  return(lookup);
}

sub vcl_fetch {
  if (beresp.http.Set-Cookie) {
    return(hit_for_pass);
  }

  # a stream of events: an hour without questions
  if (beresp.http.Content-Type ~ "text/event-stream") {
    set beresp.ttl = 1h;
    return ( hit_for_pass );
  }

  if (beresp.http.Cache-Control ~ "no-store" || beresp.http.Authorization) {
    set beresp.ttl = 120s; return(hit_for_pass);
  }
  if (req.request == "GET" && beresp.status == 200 && beresp.ttl < 1m) { set beresp.ttl = 1m; }
  return(deliver);
}
