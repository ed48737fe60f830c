vcl 4.1;

import std;
import directors;

probe status {
  .url = "/status";
  .interval = 10s;
  .timeout = 2s;
  .window = 8;
  .threshold = 6;
}

backend app1 { .host = "172.20.1.1"; .port = "8080"; .probe = status; }
backend app2 { .host = "172.20.1.2"; .port = "8080"; .probe = status; }

sub vcl_init {
  new app = directors.random();
  app.add_backend(app1, 2);
  app.add_backend(app2, 1);
}

acl upstream_proxy {
  "172.20.0.1";
}

sub vcl_recv {
  set req.backend_hint = app.backend();

  if (std.healthy(req.backend_hint)) {
    set req.grace = 30s;
  } else {
    set req.grace = 24h;
  }

  if (req.url ~ "^/admin" || req.url ~ "^/user" || req.url ~ "/ajax/") {
    return (pass);
  }

  if (req.http.Accept-Encoding) {
    if (req.url ~ "\.(jpg|png|gif|gz|tgz|bz2|mp3)$") {
      unset req.http.Accept-Encoding;
    } elsif (req.http.Accept-Encoding ~ "gzip") {
      set req.http.Accept-Encoding = "gzip";
    } else {
      unset req.http.Accept-Encoding;
    }
  }

  if (req.method == "BAN") {
    if (client.ip !~ upstream_proxy) {
      return (synth(403, "Not allowed."));
    }
    ban("req.http.host == " + req.http.host + " && req.url == " + req.url);
    return (synth(200, "Ban added"));
  }

  if (req.http.Cookie !~ "SESS[a-f0-9]+=") {
    unset req.http.Cookie;
  }
}

sub vcl_backend_response {
  if (bereq.url ~ "^/sites/[^/]+/files/" && beresp.status == 200) {
    unset beresp.http.Set-Cookie;
    set beresp.ttl = 2w;
  }
  if (beresp.status >= 500) {
    std.log("Backend " + beresp.backend.name + " answered " + beresp.status + " for " + bereq.url);
  }
  set beresp.grace = 24h;
}

sub vcl_deliver {
  if (obj.hits > 0) {
    set resp.http.X-Varnish-Cache = "HIT";
  }
  else {
    set resp.http.X-Varnish-Cache = "MISS";
  }
}
