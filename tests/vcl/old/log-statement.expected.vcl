vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  std.log("recv: " + req.method + " " + req.url + " from " + client.ip);
  if (req.http.Cookie) {
    std.log("cookie, so pass");
    return (pass);
  }
  return (hash);
}

sub vcl_hit {
  std.log({"hit: "} + req.url);
}

sub vcl_backend_response {
  std.log("fetch: " + beresp.status + " " + beresp.reason);
  if (beresp.status == 500) {
    std.log("trouble at the backend");
    set beresp.uncacheable = true;
    set beresp.ttl = 120s;
    return (deliver);
  }
}
