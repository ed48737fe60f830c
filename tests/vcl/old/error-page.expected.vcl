vcl 4.1;

backend default {
  .host = "127.0.0.1";
  .port = "8080";
}

sub vcl_recv {
  if (req.url ~ "^/hidden/") {
    return (synth(404, "Not found"));
  }
  if (req.method == "TRACE") {
    return (synth(405));
  }
}

# One page for all errors, ours and the backend's.
sub vcl_synth {
  set resp.http.Content-Type = "text/html; charset=utf-8";
  set resp.http.Retry-After = "5";
  synthetic({"<!DOCTYPE html>
<html>
  <head>
    <title>"} + resp.status + " " + resp.reason + {"</title>
  </head>
  <body>
    <h1>Sorry</h1>
    <p>"} + resp.reason + {"</p>
    <!-- "} + req.xid + {" -->
  </body>
</html>
"});
  return (deliver);
}

sub vcl_backend_error {
  set beresp.http.Content-Type = "text/html; charset=utf-8";
  set beresp.http.Retry-After = "5";
  synthetic({"<!DOCTYPE html>
<html>
  <head>
    <title>"} + beresp.status + " " + beresp.reason + {"</title>
  </head>
  <body>
    <h1>Sorry</h1>
    <p>"} + beresp.reason + {"</p>
    <!-- "} + bereq.xid + {" -->
  </body>
</html>
"});
  return (deliver);
}
