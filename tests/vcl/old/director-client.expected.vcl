vcl 4.1;

import directors;

backend tomcat1 { .host = "10.11.0.1"; .port = "8080"; }
backend tomcat2 { .host = "10.11.0.2"; .port = "8080"; }

// Sessions live in one Tomcat only.
sub vcl_init {
  new tomcats = directors.hash();
  tomcats.add_backend(tomcat1, 1);
  tomcats.add_backend(tomcat2, 2);
}

sub vcl_recv {
  if (req.http.Cookie ~ "JSESSIONID=") {
    set client.identity = regsub(req.http.Cookie, "^.*JSESSIONID=([^;]+).*$", "\1");
  } else {
    set client.identity = client.ip;
  }
  set req.backend_hint = tomcats.backend(client.identity);
  if (req.url ~ "^/app/" || req.method == "POST") {
    return (pass);
  }
}

sub vcl_backend_error {
  if (beresp.status == 503 && bereq.retries < 2) {
    return (retry);
  }
}
