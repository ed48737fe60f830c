# vcl 3
backend big { .host = "10.7.0.1"; .port = "80"; .max_connections = 300; }
backend small { .host = "10.7.0.2"; .port = "80"; .max_connections = 100; }

# big has three times the cores
director farm random {
  .retries = 5;
  { .backend = big;   .weight = 3; }
  { .backend = small; .weight = 1; }
}

sub vcl_recv {
  set req.backend = farm;
  if (req.url ~ "^/cgi-bin/") {
    return (pipe);
  }
}

sub vcl_pipe {
  # without this the next request on the connection would be piped too
  set bereq.http.connection = "close";
}

sub vcl_error {
  set obj.http.Content-Type = "text/html";
  # plain, because the style sheet is on the same machines
  synthetic {"<p>If error 503 comes again, remove cookies; then come back later.</p>"};
  return (deliver);
}
