# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  log "recv: " req.request " " req.url " from " client.ip;
  if (req.http.Cookie) {
    log "cookie, so pass";
    return (pass);
  }
  return (lookup);
}

sub vcl_hit {
  log {"hit: "} req.url;
}

sub vcl_fetch {
  log "fetch: " beresp.status " " beresp.response;
  if (beresp.status == 500) {
    log "trouble at the backend";
    set beresp.ttl = 0s;
    return (pass);
  }
}
