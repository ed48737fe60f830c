# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.request != "GET" && req.request != "HEAD") { return (pass); }
  return (lookup);
}

sub vcl_fetch {
  # fetch again 30 seconds before it expires
  set obj.prefetch = -30s;
  if (obj.ttl < 60s) {
    set obj.ttl = 60s;
  }
  return (deliver);
}

sub vcl_prefetch {
  return (fetch);
}

sub vcl_timeout {
  # the front page stays warm
  if (req.url == "/") {
    return (fetch);
  }
  return (discard);
}

sub vcl_discard {
  return (discard);
}
