# vcl 3
backend a { .host = "10.21.0.1"; .port = "80"; .saintmode_threshold = 3; }
backend b { .host = "10.21.0.2"; .port = "80"; .saintmode_threshold = 0; } # never mind

director ab round-robin {
  { .backend = a; }
  { .backend = b; }
}

sub vcl_recv {
  set req.backend = ab;
  if (req.backend.healthy) { set req.grace = 15s; } else { set req.grace = 2h; }
}

sub vcl_fetch {
  set beresp.grace = 2h;
  if (beresp.status >= 500 && beresp.status < 600) {
    set beresp.saintmode = 20s;
    if (req.request != "POST") {
      return (restart);
    } else {
      error 500 "Failed";
    }
  }
}
