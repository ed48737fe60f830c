vcl 4.1;

# Lines from newer recipes were added without changing the rest.
import std;
import cookie;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.method != "GET" && req.method != "HEAD") { return (pass); }
  if (req.http.Cookie) {
    cookie.parse(req.http.Cookie);
    cookie.keep("sid,lang");
    set req.http.Cookie = cookie.get_string();
    if (req.http.Cookie == "") { unset req.http.Cookie; }
  }
  if (std.integer(real=std.real(req.http.X-Load, 0.0)) > 8) {
    return (synth(503, "Busy"));
  }
}

sub vcl_backend_response {
  set beresp.ttl = std.duration(beresp.http.X-Cache-For, 60s);
}

sub vcl_deliver {
  if (!req.http.Cookie) {
    set resp.http.Set-Cookie = "seen=1; expires=" + cookie.format_date(now, 30d);
  }
}
