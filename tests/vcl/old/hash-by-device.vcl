# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.http.user-agent ~ "(iPhone|Android|webOS)") {
    set req.http.X-Kind = "phone";
  } else {
    set req.http.X-Kind = "other";
  }
  remove req.http.cookie;
  return (lookup);
}

sub vcl_hash {
  set req.hash += req.url;
  set req.hash += req.http.host;
  set req.hash += req.http.X-Kind;
  return (hash);
}

sub vcl_error {
  synthetic {"<html><body><h1>"} obj.status {"</h1><p>"} obj.response {"</p></body></html>"};   // short enough for phones
  set obj.http.Content-Type = "text/html; charset=utf-8";
  return (deliver);
}
