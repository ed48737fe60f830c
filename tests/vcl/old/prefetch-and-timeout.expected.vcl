# decision: prefetch subs that ran at the end of an object's life are gone; grace refreshes what is asked for, nothing keeps the rest warm
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.method != "GET" && req.method != "HEAD") { return (pass); }
  return (hash);
}

sub vcl_backend_response {
  if (beresp.ttl < 60s) {
    set beresp.ttl = 60s;
  }
  # the front page stays warm while somebody asks for it
  if (bereq.url == "/") {
    set beresp.grace = 1h;
  } else {
    set beresp.grace = 30s;
  }
  return (deliver);
}
