# vcl 2
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
    set req.backend = zope1;
    set req.url = "/VirtualHostBase/http/" req.http.host ":80/gardens/VirtualHostRoot" req.url;
  } elsif (req.http.host ~ "^(www\.)?museum\.example\.org$") {
    set req.http.host = "www.museum.example.org";
    set req.backend = zope2;
    set req.url = "/VirtualHostBase/http/" req.http.host ":80/museum/VirtualHostRoot" req.url;
  } else {
    error 404 "Unknown virtual host";
  }

  if (req.request != "GET" && req.request != "HEAD") {
    return (pass);
  }
  if (req.http.Authenticate || req.http.Authorization) {
    return (pass);
  }
  # __ac is the login; ZopeId only the session
  if (req.http.Cookie && req.http.Cookie ~ "__ac(|_(name|password|persistent))=") {
    return (pass);
  }
  remove req.http.Cookie;
  return (lookup);
}

sub vcl_fetch {
  if (beresp.http.Set-Cookie) {
    set beresp.http.X-Cacheable = "NO: sets a cookie";
    return (pass);
  }
  if (beresp.http.Cache-Control ~ "(private|no-cache|no-store)") {
    set beresp.http.X-Cacheable = "NO: Cache-Control";
    return (pass);
  }
  if (req.http.Authorization && !beresp.http.Cache-Control ~ "public") {
    set beresp.http.X-Cacheable = "NO: Authorization";
    return (pass);
  }
  if (!beresp.cacheable) {
    return (pass);
  }
}
