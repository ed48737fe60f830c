# decision: inline-c the C code writes to the system's log; std.syslog does it
vcl 4.1;

import std;

backend default {
  .host = "127.0.0.1";
  .port = "8080";
}

acl trusted { "127.0.0.1"; "10.0.0.0"/8; }

sub vcl_recv {
  if (req.method == "PURGE") {
    if (client.ip ~ trusted) {
      ban("req.url == " + req.url + " && req.http.host == " + req.http.host);
      return (synth(200, "Purged"));
    }
    std.syslog(6, "purge refused for " + client.ip);
    return (synth(403, "Forbidden"));
  }
}
