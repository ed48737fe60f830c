# vcl 3
backend default {
  .host = "127.0.0.1";
  .port = "8080";
}

sub vcl_recv {
  if (req.url ~ "^/hidden/") {
    error 404 "Not found";
  }
  if (req.request == "TRACE") {
    error 405;
  }
}

# One page for all errors, ours and the backend's.
sub vcl_error {
  set obj.http.Content-Type = "text/html; charset=utf-8";
  set obj.http.Retry-After = "5";
  synthetic {"<!DOCTYPE html>
<html>
  <head>
    <title>"} + obj.status + " " + obj.response + {"</title>
  </head>
  <body>
    <h1>Sorry</h1>
    <p>"} + obj.response + {"</p>
    <!-- "} + req.xid + {" -->
  </body>
</html>
"};
  return (deliver);
}
