# vcl 3
backend tomcat1 { .host = "10.11.0.1"; .port = "8080"; }
backend tomcat2 { .host = "10.11.0.2"; .port = "8080"; }

// Sessions live in one Tomcat only.
director tomcats client {
  { .backend = tomcat1; .weight = 1; }
  { .backend = tomcat2; .weight = 2; }
}

sub vcl_recv {
  if (req.http.Cookie ~ "JSESSIONID=") {
    set client.identity = regsub(req.http.Cookie, "^.*JSESSIONID=([^;]+).*$", "\1");
  } else {
    set client.identity = client.ip;
  }
  set req.backend = tomcats;
  if (req.url ~ "^/app/" || req.request == "POST") {
    return (pass);
  }
}

sub vcl_error {
  if (obj.status == 503 && req.restarts < 2) {
    return (restart);
  }
}
