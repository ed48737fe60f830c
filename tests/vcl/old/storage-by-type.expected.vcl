# decision: storage the storage has to be one that the command line names
vcl 4.1;

# Started with: -s Transient=malloc,512m -s file,/var/cache/big,200G
backend media { .host = "10.24.0.1"; .port = "80"; }

sub vcl_recv {
  unset req.http.Cookie;
  if (req.method == "GET" || req.method == "HEAD") { return (hash); }
  return (synth(405, "Read only"));
}

sub vcl_backend_response {
  set beresp.do_stream = true;
  if (beresp.http.Content-Type ~ "^video/") {
    set beresp.ttl = 30d;
  } else {
    # small things stay in memory
    set beresp.storage = storage.Transient;
    set beresp.ttl = 1h;
  }
}
