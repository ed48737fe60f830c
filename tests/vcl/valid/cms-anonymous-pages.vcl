vcl 4.1;

import std;
import directors;

probe front_page {
  .url = "/core/misc/favicon.ico";
  .interval = 5s;
  .timeout = 4s;
  .window = 5;
  .threshold = 3;
  .initial = 3;
}

backend web1 {
  .host = "192.0.2.81";
  .port = "80";
  .probe = front_page;
}

backend web2 {
  .host = "192.0.2.82";
  .port = "80";
  .probe = front_page;
}

acl upstream_proxy { "192.0.2.90"; }

acl internal {
  "192.0.2.0"/24;
  ! "192.0.2.250";
}

sub vcl_init {
  new pool = directors.random();
  pool.add_backend(web1, 10);
  pool.add_backend(web2, 5.5);
}

sub vcl_recv {
  set req.backend_hint = pool.backend();

  if (req.restarts == 0) {
    if (client.ip ~ upstream_proxy) {
      set req.http.X-Forwarded-For = req.http.X-Real-Forwarded-For;
    } else {
      set req.http.X-Forwarded-For = regsub(client.ip, ":.*", "");
    }
  }

  if (req.method == "BAN") {
    if (client.ip !~ internal) {
      return (synth(403, "No purge from here"));
    }
    if (req.http.Cache-Tags) {
      ban("obj.http.Cache-Tags ~ " + req.http.Cache-Tags);
    } else {
      return (synth(403, "Cache-Tags is not set."));
    }
    return (synth(200, "Banned now."));
  }

  # Scripts of the maintenance are for the inside.
  if (req.url ~ "^/(cron|install|update)\.php" && client.ip !~ internal) {
    set req.url = "/404";
  }

  if (req.url ~ "^/(status|update)\.php$" ||
      req.url ~ "^/(admin|user|flag)(/.*)?$" ||
      req.url ~ "^.*/ajax/.*$" ||
      req.url ~ "^/system/files/") {
    return (pass);
  }

  if (req.url ~ "(?i)\.(css|js|png|gif|jpe?g|ico|svg|pdf|csv|txt)(\?.*)?$") {
    unset req.http.Cookie;
  }

  if (req.http.Cookie) {
    # Drop each cookie that is neither a session nor the no-cache one.
    set req.http.Cookie = regsuball(req.http.Cookie, "(^|;) *(?!S?SESS[a-z0-9]+=|NO_CACHE=)[^;]*", "");
    set req.http.Cookie = regsub(req.http.Cookie, "^[; ]+", "");
    if (req.http.Cookie == "") {
      unset req.http.Cookie;
    } else {
      return (pass);
    }
  }
}

sub vcl_backend_response {
  set beresp.http.X-Url = bereq.url;
  set beresp.http.X-Host = bereq.http.host;

  if (beresp.status == 404 && bereq.url ~ "(?i)\.(png|gif|jpe?g|ico|css|js)(\?.*)?$") {
    set beresp.ttl = 10m;
    unset beresp.http.Set-Cookie;
  }
  if (bereq.url ~ "(?i)\.(css|js|png|gif|jpe?g|ico|svg|pdf|csv|txt)(\?.*)?$") {
    unset beresp.http.Set-Cookie;
  }
  set beresp.grace = 6h;
}

sub vcl_backend_error {
  set beresp.http.Content-Type = "text/html; charset=utf-8";
  set beresp.body = {"<html><body><h1>"} + beresp.status + {"</h1>
<p>The site is being updated; see <a href="https://status.example.org/">the state of the service</a>.</p></body></html>"};
  return (deliver);
}

sub vcl_deliver {
  unset resp.http.X-Url;
  unset resp.http.X-Host;
  if (client.ip ~ internal) {
    set resp.http.X-Backend = req.backend_hint;
    set resp.http.X-Served-By = server.hostname;
  } else {
    unset resp.http.Cache-Tags;
    unset resp.http.X-Generator;
  }
}
