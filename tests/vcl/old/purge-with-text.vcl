# vcl 2
backend default {
  .host = "127.0.0.1";
  .port = "8080";
}
acl local { "127.0.0.1"; }

sub vcl_recv {
  if (req.request == "PURGE") {
    if (client.ip ~ local) {
      purge("req.url == " req.url " && req.http.host == " req.http.host);
      error 200 "Purged";
    }
    error 405 "No";
  }
  # the whole site, after a new release
  if (req.request == "REFRESH") {
    if (client.ip ~ local) {
      purge("req.http.host == " req.http.host);
      error 200 "Purged all of " req.http.host;
    }
    error 405 "No";
  }
}
