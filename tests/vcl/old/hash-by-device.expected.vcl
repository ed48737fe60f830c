vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.http.user-agent ~ "(iPhone|Android|webOS)") {
    set req.http.X-Kind = "phone";
  } else {
    set req.http.X-Kind = "other";
  }
  unset req.http.cookie;
  return (hash);
}

sub vcl_hash {
  hash_data(req.url);
  hash_data(req.http.host);
  hash_data(req.http.X-Kind);
  return (lookup);
}

sub vcl_synth {
  synthetic({"<html><body><h1>"} + resp.status + {"</h1><p>"} + resp.reason + {"</p></body></html>"});   // short enough for phones
  set resp.http.Content-Type = "text/html; charset=utf-8";
  return (deliver);
}

sub vcl_backend_error {
  synthetic({"<html><body><h1>"} + beresp.status + {"</h1><p>"} + beresp.reason + {"</p></body></html>"});   // short enough for phones
  set beresp.http.Content-Type = "text/html; charset=utf-8";
  return (deliver);
}
