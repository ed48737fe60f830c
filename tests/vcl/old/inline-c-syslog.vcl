# vcl 2
C{
#include <syslog.h>
}C

backend default {
  .host = "127.0.0.1";
  .port = "8080";
}

acl trusted { "127.0.0.1"; "10.0.0.0"/8; }

sub vcl_recv {
  if (req.request == "PURGE") {
    if (client.ip ~ trusted) {
      purge("req.url == " req.url " && req.http.host == " req.http.host);
      error 200 "Purged";
    }
    C{
      syslog(LOG_INFO, "purge refused for %s", VRT_IP_string(sp, VRT_r_client_ip(sp)));
    }C
    error 403 "Forbidden";
  }
}
