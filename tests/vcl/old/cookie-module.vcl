# vcl 3
# Lines from newer recipes were added without changing the rest.
import std;
import cookie;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.request != "GET" && req.request != "HEAD") { return (pass); }
  if (req.http.Cookie) {
    cookie.parse(req.http.Cookie);
    cookie.filter_except("sid,lang");
    set req.http.Cookie = cookie.get_string();
    if (req.http.Cookie == "") { remove req.http.Cookie; }
  }
  if (std.real2integer(std.real(req.http.X-Load, 0.0), 0) > 8) {
    error 503 "Busy";
  }
}

sub vcl_fetch {
  set beresp.ttl = std.duration(beresp.http.X-Cache-For, 60s);
}

sub vcl_deliver {
  if (!req.http.Cookie) {
    set resp.http.Set-Cookie = "seen=1; expires=" + cookie.format_rfc1123(now, 30d);
  }
}
