# vcl 3
# The first director of the file takes every request; nobody names it.
director all round-robin {
  { .backend = { .host = "10.13.0.1"; .port = "8080"; } }
  { .backend = { .host = "10.13.0.2"; .port = "8080"; } }
}

sub vcl_recv {
  if (req.request == "PURGE") {
    error 405 "Not here";
  }
  remove req.http.X-Forwarded-Host;
}
