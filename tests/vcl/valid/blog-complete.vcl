vcl 4.0;

import std;
import directors;

# One server, with room for a second one.
backend server1 {
  .host = "127.0.0.1";
  .port = "8080";
  .max_connections = 300;

  .probe = {
    .request =
      "HEAD / HTTP/1.1"
      "Host: blog.example.org"
      "Connection: close"
      "User-Agent: probe";
    .interval  = 5s;
    .timeout   = 1s;
    .window    = 5;
    .threshold = 3;
  }

  .first_byte_timeout     = 300s;
  .connect_timeout        = 5s;
  .between_bytes_timeout  = 2s;
}

acl editors {
  "localhost";
  "127.0.0.1";
  "::1";
  "198.51.100.0"/25;
}

sub vcl_init {
  new vdir = directors.round_robin();
  vdir.add_backend(server1);
}

sub vcl_recv {
  set req.backend_hint = vdir.backend();

  set req.http.Host = regsub(req.http.Host, ":[0-9]+", "");
  unset req.http.proxy;
  set req.url = std.querysort(req.url);

  if (req.method == "PURGE") {
    if (client.ip !~ editors) {
      return (synth(405, "PURGE is not open to " + client.ip));
    }
    return (purge);
  }

  if (req.http.Upgrade ~ "(?i)websocket") {
    return (pipe);
  }

  if (req.method != "GET" && req.method != "HEAD") {
    return (pass);
  }

  # Anchors never reach a server; parameters of campaigns need not.
  if (req.url ~ "#") {
    set req.url = regsub(req.url, "#.*$", "");
  }
  if (req.url ~ "\?$") {
    set req.url = regsub(req.url, "\?$", "");
  }
  if (req.url ~ "(\?|&)(utm_source|utm_medium|utm_campaign|gclid)=") {
    set req.url = regsuball(req.url, "(utm_source|utm_medium|utm_campaign|gclid)=[^&]*(&|$)", "");
    set req.url = regsub(req.url, "&$", "");
    set req.url = regsub(req.url, "\?$", "");
  }

  set req.http.Cookie = regsuball(req.http.Cookie, "has_js=[^;]+(; )?", "");
  set req.http.Cookie = regsuball(req.http.Cookie, "_g[a-z]{1,3}=[^;]+(; )?", "");
  set req.http.Cookie = regsuball(req.http.Cookie, "wp-settings-(time-)?1=[^;]+(; )?", "");
  set req.http.Cookie = regsuball(req.http.Cookie, "wordpress_test_cookie=[^;]+(; )?", "");
  set req.http.Cookie = regsuball(req.http.Cookie, "^;\s*", "");
  if (req.http.cookie ~ "^\s*$") {
    unset req.http.cookie;
  }

  # Large files go through without their cookies.
  if (req.url ~ "^[^?]*\.(zip|gz|xz|iso|dmg|mp3|mp4|mkv|webm|ogg|flac)(\?.*)?$") {
    unset req.http.Cookie;
    return (hash);
  }
  if (req.url ~ "^[^?]*\.(css|js|map|png|jpe?g|gif|webp|avif|ico|svg|woff2?|ttf|txt|xml|pdf)(\?.*)?$") {
    unset req.http.Cookie;
    return (hash);
  }

  set req.http.Surrogate-Capability = "key=ESI/1.0";

  if (req.http.Authorization) {
    return (pass);
  }
  return (hash);
}

sub vcl_pipe {
  if (req.http.upgrade) {
    set bereq.http.upgrade = req.http.upgrade;
  }
  return (pipe);
}

sub vcl_hash {
  hash_data(req.url);
  if (req.http.host) {
    hash_data(req.http.host);
  } else {
    hash_data(server.ip);
  }
  if (req.http.Cookie) {
    hash_data(req.http.Cookie);
  }
  return (lookup);
}

sub vcl_hit {
  if (obj.ttl >= 0s) {
    return (deliver);
  }
  if (std.healthy(req.backend_hint)) {
    if (obj.ttl + 10s > 0s) {
      return (deliver);
    }
  } else {
    if (obj.ttl + obj.grace > 0s) {
      return (deliver);
    }
  }
}

sub vcl_backend_response {
  if (beresp.http.Surrogate-Control ~ "ESI/1.0") {
    unset beresp.http.Surrogate-Control;
    set beresp.do_esi = true;
  }
  if (bereq.url ~ "^[^?]*\.(zip|gz|xz|iso|dmg|mp3|mp4|mkv|webm|ogg|flac)(\?.*)?$") {
    unset beresp.http.set-cookie;
    set beresp.do_stream = true;
  }
  if (beresp.status == 301 || beresp.status == 302) {
    set beresp.http.Location = regsub(beresp.http.Location, ":[0-9]+", "");
  }
  if (beresp.ttl <= 0s || beresp.http.Set-Cookie || beresp.http.Vary == "*") {
    set beresp.ttl = 120s;
    set beresp.uncacheable = true;
    return (deliver);
  }
  set beresp.grace = 6h;
  return (deliver);
}

sub vcl_deliver {
  if (obj.hits > 0) {
    set resp.http.X-Cache = "HIT";
  } else {
    set resp.http.X-Cache = "MISS";
  }
  set resp.http.X-Cache-Hits = obj.hits;
  unset resp.http.X-Powered-By;
  unset resp.http.Server;
  unset resp.http.X-Generator;
  return (deliver);
}

sub vcl_purge {
  if (req.method == "PURGE" && req.http.X-Warm) {
    set req.method = "GET";
    return (restart);
  }
}

sub vcl_synth {
  if (resp.status == 720) {
    set resp.http.Location = resp.reason;
    set resp.status = 301;
    return (deliver);
  }
}

sub vcl_fini {
  return (ok);
}
