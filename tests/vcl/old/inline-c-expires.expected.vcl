# decision: inline-c the C code sets `Expires`; a TIME that is used as a text does the same
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.method != "GET" && req.method != "HEAD") { return (pass); }
  unset req.http.Cookie;
}

sub vcl_backend_response {
  if (bereq.url ~ "^/static/") {
    set beresp.ttl = 1h;
  }
}

sub vcl_deliver {
  # browsers shall keep it for an hour from now on, not from the fetch on
  set resp.http.Expires = now + 1h;
  unset resp.http.Age;
}
