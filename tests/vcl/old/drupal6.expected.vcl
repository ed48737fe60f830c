vcl 4.1;

import std;
import directors;

# Drupal 6 (Pressflow), two web servers
backend web1 {
  .host = "10.10.0.11";
  .port = "80";
  .probe = {
    .url = "/status.php";
    .interval = 5s;
    .timeout = 1s;
    .window = 5;
    .threshold = 3;
  }
}
backend web2 {
  .host = "10.10.0.12";
  .port = "80";
  .probe = {
    .url = "/status.php";
    .interval = 5s;
    .timeout = 1s;
    .window = 5;
    .threshold = 3;
  }
}

sub vcl_init {
  new drupal = directors.round_robin();
  drupal.add_backend(web1);
  drupal.add_backend(web2);
}

sub vcl_recv {
  set req.backend_hint = drupal.backend();

  if (!std.healthy(req.backend_hint)) {
    # nobody is at home: serve without a session, from the cache
    unset req.http.Cookie;
  }
  set req.grace = 6h;

  # these are for the web servers themselves
  if (req.url ~ "^/status\.php$" ||
      req.url ~ "^/update\.php$" ||
      req.url ~ "^/install\.php$") {
    return (pass);
  }
  if (req.url ~ "^/(cron|install)\.php$" && !req.http.X-Internal) {
    return (synth(404, "Page not found."));
  }

  # backup files by http: big, and one reader
  if (req.url ~ "^/admin/content/backup_migrate/export") {
    return (pipe);
  }

  if (req.url ~ "(?i)\.(png|gif|jpeg|jpg|ico|swf|css|js|html|htm)(\?[a-z0-9]+)?$") {
    unset req.http.Cookie;
  }

  if (req.http.Cookie) {
    set req.http.Cookie = ";" + req.http.Cookie;
    set req.http.Cookie = regsuball(req.http.Cookie, "; +", ";");
    set req.http.Cookie = regsuball(req.http.Cookie, ";(SESS[a-z0-9]+|NO_CACHE)=", "; \1=");
    set req.http.Cookie = regsuball(req.http.Cookie, ";[^ ][^;]*", "");
    set req.http.Cookie = regsuball(req.http.Cookie, "^[; ]+|[; ]+$", "");
    if (req.http.Cookie == "") {
      unset req.http.Cookie;
    } else {
      return (pass);
    }
  }
}

sub vcl_hash {
  if (req.http.Cookie) {
    hash_data(req.http.Cookie);
  }
}

sub vcl_backend_response {
  if (beresp.status == 404 || beresp.status == 301 || beresp.status == 500) {
    set beresp.ttl = 10m;
  }
  if (bereq.url ~ "(?i)\.(png|gif|jpeg|jpg|ico|swf|css|js|html|htm)(\?[a-z0-9]+)?$") {
    unset beresp.http.set-cookie;
  }
  set beresp.grace = 6h;
}

sub vcl_synth {
  /* a short page; the long one is on the web server */
  set resp.http.Content-Type = "text/html; charset=utf-8";
  synthetic({"<html><head><title>Page unavailable</title></head>
<body><h1>Page unavailable</h1>
<p>The page you asked for is not available just now.</p>
<p>("} + resp.status + " " + resp.reason + {")</p>
</body></html>"});
  return (deliver);
}

sub vcl_backend_error {
  /* a short page; the long one is on the web server */
  set beresp.http.Content-Type = "text/html; charset=utf-8";
  synthetic({"<html><head><title>Page unavailable</title></head>
<body><h1>Page unavailable</h1>
<p>The page you asked for is not available just now.</p>
<p>("} + beresp.status + " " + beresp.reason + {")</p>
</body></html>"});
  return (deliver);
}
