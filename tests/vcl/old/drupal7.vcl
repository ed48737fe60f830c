# vcl 3
import std;

probe status {
  .url = "/status";
  .interval = 10s;
  .timeout = 2s;
  .window = 8;
  .threshold = 6;
}

backend app1 { .host = "172.20.1.1"; .port = "8080"; .probe = status; }
backend app2 { .host = "172.20.1.2"; .port = "8080"; .probe = status; }

director app random {
  .retries = 3;
  { .backend = app1; .weight = 2; }
  { .backend = app2; .weight = 1; }
}

acl upstream_proxy {
  "172.20.0.1";
}

sub vcl_recv {
  set req.backend = app;

  if (req.backend.healthy) {
    set req.grace = 30s;
  } else {
    set req.grace = 24h;
  }

  if (req.url ~ "^/admin" || req.url ~ "^/user" || req.url ~ "/ajax/") {
    return (pass);
  }

  if (req.http.Accept-Encoding) {
    if (req.url ~ "\.(jpg|png|gif|gz|tgz|bz2|mp3)$") {
      remove req.http.Accept-Encoding;
    } elsif (req.http.Accept-Encoding ~ "gzip") {
      set req.http.Accept-Encoding = "gzip";
    } else {
      remove req.http.Accept-Encoding;
    }
  }

  if (req.request == "BAN") {
    if (client.ip !~ upstream_proxy) {
      error 403 "Not allowed.";
    }
    ban("req.http.host == " + req.http.host + " && req.url == " + req.url);
    error 200 "Ban added";
  }

  if (req.http.Cookie !~ "SESS[a-f0-9]+=") {
    unset req.http.Cookie;
  }
}

sub vcl_fetch {
  if (req.url ~ "^/sites/[^/]+/files/" && beresp.status == 200) {
    unset beresp.http.Set-Cookie;
    set beresp.ttl = 2w;
  }
  if (beresp.status >= 500) {
    std.log("Backend " + beresp.backend.name + " answered " + beresp.status + " for " + req.url);
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
