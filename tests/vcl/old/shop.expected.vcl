vcl 4.1;

# Shop, with blocks as ESI.
# Keep the list of static types the same in vcl_recv and vcl_backend_response!
import std;

backend default {
  .host = "10.30.0.8";
  .port = "80";
  .connect_timeout = 600s;
  .first_byte_timeout = 600s;
  .between_bytes_timeout = 600s;
}

backend admin {
  .host = "10.30.0.9";
  .port = "80";
  .first_byte_timeout = 18000s;
  .between_bytes_timeout = 18000s;
}

acl crawler_acl { "10.30.0.0"/24; }
acl debug_acl { "10.30.0.8"; "10.30.0.250"; }

sub vcl_recv {
  if (req.restarts == 0) {
    set req.http.X-Opt-Enable-Caching = "true";
  }

  if (req.method !~ "^(GET|HEAD|PUT|POST|TRACE|OPTIONS|DELETE)$") {
    return (pipe);
  }

  set req.url = regsuball(req.url, "([^:])//+", "\1/");
  if (req.url ~ "^/backoffice") {
    set req.backend_hint = admin;
    return (pass);
  }
  if (req.http.X-Opt-Enable-Caching != "true" || req.http.Authorization ||
      req.method !~ "^(GET|HEAD)$" || req.http.Cookie ~ "nocache=1") {
    return (pipe);
  }

  if (req.url ~ "\.(css|js|jpe?g|png|gif|ico|swf)(?=\?|&|$)") {
    unset req.http.Cookie;
    unset req.http.X-Session;
    set req.http.X-Static = "1";
    return (hash);
  }

  if (req.http.Cookie ~ "frontend=") {
    set req.http.X-Session = regsub(req.http.Cookie, ".*\bfrontend=([^;]*).*", "\1");
  } elseif (client.ip ~ crawler_acl) {
    # the crawler warms the cache, all visits with one session
    set req.http.X-Session = "crawler-session";
  } else {
    return (synth(760, "New session"));
  }
  if (req.esi_level > 0) { set req.http.X-Esi-Access = "private"; }
  return (hash);
}

sub vcl_hash {
  hash_data(req.url);
  if (req.http.Host) {
    hash_data(req.http.Host);
  } else {
    hash_data(server.ip);
  }
  if (req.http.X-Static) {
    return (lookup);
  }
  if (req.http.X-Esi-Access == "private") {
    hash_data(req.http.X-Session);
  }
  if (req.http.Cookie ~ "currency=") {
    hash_data("c=" + regsub(req.http.Cookie, ".*\bcurrency=([^;]*).*", "\1"));
  }
  return (lookup);
}

sub vcl_backend_response {
  set beresp.grace = 15s;
  if (bereq.http.X-Static) {
    unset beresp.http.Set-Cookie;
    set beresp.ttl = 4h;
    return (deliver);
  }
  if (beresp.status != 200 && beresp.status != 404) {
    set beresp.uncacheable = true;
    set beresp.ttl = 15s;
    return (deliver);
  }
  if (beresp.http.X-Esi == "1") {
    set beresp.do_esi = true;
  }
  if (beresp.http.X-Cache-Ttl) {
    set beresp.ttl = std.duration(beresp.http.X-Cache-Ttl, 0s);
  }
  unset beresp.http.X-Cache-Ttl;
}

sub vcl_deliver {
  if (client.ip !~ debug_acl) {
    unset resp.http.X-Esi;
    unset resp.http.X-Powered-By;
    unset resp.http.Server;
  }
}

sub vcl_synth {
  if (resp.status == 760) {
    set resp.status = 302;
    set resp.http.Location = req.url;
    set resp.http.Set-Cookie = "frontend=" + req.xid + "; path=/";
    return (deliver);
  }
}
