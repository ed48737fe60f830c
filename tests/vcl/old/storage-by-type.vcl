# vcl 3
# Started with: -s Transient=malloc,512m -s file,/var/cache/big,200G
backend media { .host = "10.24.0.1"; .port = "80"; }

sub vcl_recv {
  remove req.http.Cookie;
  if (req.request == "GET" || req.request == "HEAD") { return (lookup); }
  error 405 "Read only";
}

sub vcl_fetch {
  set beresp.do_stream = true;
  if (beresp.http.Content-Type ~ "^video/") {
    set beresp.ttl = 30d;
  } else {
    # small things stay in memory
    set beresp.storage = "Transient";
    set beresp.ttl = 1h;
  }
}
