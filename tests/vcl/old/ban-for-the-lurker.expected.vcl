vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }
acl ban_from { "127.0.0.1"; }

sub vcl_recv {
  if (req.method == "BAN") {
    if (client.ip !~ ban_from) { return (synth(405, "Not allowed.")); }
    ban("obj.http.x-url ~ " + req.http.x-ban-url + " && obj.http.x-host == " + req.http.x-ban-host);
    return (synth(200, "Banned."));
  }
}

sub vcl_backend_response {
  # The lurker has no request at hand, so keep what it needs.
  set beresp.http.x-url = bereq.url;
  set beresp.http.x-host = bereq.http.host;
}

sub vcl_deliver {
  unset resp.http.x-url;
  unset resp.http.x-host;
}
