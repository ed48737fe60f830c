vcl 4.1;

/* Zope behind Varnish: the virtual host monster wants the
   public name in the path. */

backend zope1 {
  .host = "127.0.0.1";
  .port = "8081";
}

backend zope2 {
  .host = "127.0.0.1";
  .port = "8082";
}

sub vcl_recv {
  if (req.http.host ~ "^(www\.)?gardens\.example\.org$") {
    set req.http.host = "www.gardens.example.org";
    set req.backend_hint = zope1;
    set req.url = "/VirtualHostBase/http/" + req.http.host + ":80/gardens/VirtualHostRoot" + req.url;
  } elsif (req.http.host ~ "^(www\.)?museum\.example\.org$") {
    set req.http.host = "www.museum.example.org";
    set req.backend_hint = zope2;
    set req.url = "/VirtualHostBase/http/" + req.http.host + ":80/museum/VirtualHostRoot" + req.url;
  } else {
    return (synth(404, "Unknown virtual host"));
  }

  if (req.method != "GET" && req.method != "HEAD") {
    return (pass);
  }
  if (req.http.Authenticate || req.http.Authorization) {
    return (pass);
  }
  # __ac is the login; ZopeId only the session
  if (req.http.Cookie && req.http.Cookie ~ "__ac(|_(name|password|persistent))=") {
    return (pass);
  }
  unset req.http.Cookie;
  return (hash);
}

sub vcl_backend_response {
  if (beresp.http.Set-Cookie) {
    set beresp.http.X-Cacheable = "NO: sets a cookie";
    set beresp.uncacheable = true;
    set beresp.ttl = 120s;
    return (deliver);
  }
  if (beresp.http.Cache-Control ~ "(private|no-cache|no-store)") {
    set beresp.http.X-Cacheable = "NO: Cache-Control";
    set beresp.uncacheable = true;
    set beresp.ttl = 120s;
    return (deliver);
  }
  if (bereq.http.Authorization && !beresp.http.Cache-Control ~ "public") {
    set beresp.http.X-Cacheable = "NO: Authorization";
    set beresp.uncacheable = true;
    set beresp.ttl = 120s;
    return (deliver);
  }
  if (beresp.ttl <= 0s) {
    set beresp.uncacheable = true;
    set beresp.ttl = 120s;
    return (deliver);
  }
}
