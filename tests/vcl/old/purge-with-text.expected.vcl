vcl 4.1;

backend default {
  .host = "127.0.0.1";
  .port = "8080";
}
acl local { "127.0.0.1"; }

sub vcl_recv {
  if (req.method == "PURGE") {
    if (client.ip ~ local) {
      ban("req.url == " + req.url + " && req.http.host == " + req.http.host);
      return (synth(200, "Purged"));
    }
    return (synth(405, "No"));
  }
  # the whole site, after a new release
  if (req.method == "REFRESH") {
    if (client.ip ~ local) {
      ban("req.http.host == " + req.http.host);
      return (synth(200, "Purged all of " + req.http.host));
    }
    return (synth(405, "No"));
  }
}
