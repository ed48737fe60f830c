# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }
acl ban_from { "127.0.0.1"; }

sub vcl_recv {
  if (req.request == "BAN") {
    if (client.ip !~ ban_from) { error 405 "Not allowed."; }
    ban("obj.http.x-url ~ " + req.http.x-ban-url + " && obj.http.x-host == " + req.http.x-ban-host);
    error 200 "Banned.";
  }
}

sub vcl_fetch {
  # The lurker has no request at hand, so keep what it needs.
  set beresp.http.x-url = req.url;
  set beresp.http.x-host = req.http.host;
}

sub vcl_deliver {
  remove resp.http.x-url;
  remove resp.http.x-host;
}
