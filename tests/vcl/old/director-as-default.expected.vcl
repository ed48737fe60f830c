vcl 4.1;

import directors;

# The first director of the file takes every request; nobody names it.
backend all1 { .host = "10.13.0.1"; .port = "8080"; }
backend all2 { .host = "10.13.0.2"; .port = "8080"; }

sub vcl_init {
  new all = directors.round_robin();
  all.add_backend(all1);
  all.add_backend(all2);
}

sub vcl_recv {
  set req.backend_hint = all.backend();
  if (req.method == "PURGE") {
    return (synth(405, "Not here"));
  }
  unset req.http.X-Forwarded-Host;
}
