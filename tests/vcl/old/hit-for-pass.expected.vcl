vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.url ~ "^/(account|basket)") { return(pass); }
  unset req.http.Cookie;
  return(hash);
}

sub vcl_backend_response {
  if (beresp.http.Set-Cookie) {
    set beresp.uncacheable = true;
    set beresp.ttl = 120s;
    return(deliver);
  }

  # a stream of events: an hour without questions
  if (beresp.http.Content-Type ~ "text/event-stream") {
    set beresp.ttl = 1h;
    set beresp.uncacheable = true;
    return(deliver);
  }

  if (beresp.http.Cache-Control ~ "no-store" || beresp.http.Authorization) {
    set beresp.uncacheable = true; set beresp.ttl = 120s; return(deliver);
  }
  if (bereq.method == "GET" && beresp.status == 200 && beresp.ttl < 1m) { set beresp.ttl = 1m; }
  return(deliver);
}
