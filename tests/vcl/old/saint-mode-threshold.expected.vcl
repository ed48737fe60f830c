# decision: saint-mode the module saintmode takes the threshold in vcl_init; a threshold of 0 means no saint mode for the backend
vcl 4.1;

import std;
import directors;
import saintmode;

backend a { .host = "10.21.0.1"; .port = "80"; }
backend b { .host = "10.21.0.2"; .port = "80"; } # never mind

sub vcl_init {
  new a_saint = saintmode.saintmode(a, 3);
  new ab = directors.round_robin();
  ab.add_backend(a_saint.backend());
  ab.add_backend(b);
}

sub vcl_recv {
  set req.backend_hint = ab.backend();
  if (std.healthy(req.backend_hint)) { set req.grace = 15s; } else { set req.grace = 2h; }
}

sub vcl_backend_response {
  set beresp.grace = 2h;
  if (beresp.status >= 500 && beresp.status < 600) {
    saintmode.blacklist(20s);
    if (bereq.method != "POST") {
      return (retry);
    } else {
      return (error(500, "Failed"));
    }
  }
}
