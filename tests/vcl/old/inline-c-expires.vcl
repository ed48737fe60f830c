# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  if (req.request != "GET" && req.request != "HEAD") { return (pass); }
  remove req.http.Cookie;
}

sub vcl_fetch {
  if (req.url ~ "^/static/") {
    set beresp.ttl = 1h;
  }
}

sub vcl_deliver {
  # browsers shall keep it for an hour from now on, not from the fetch on
  C{
    #include <time.h>
    char buf[50];
    time_t now = time(NULL) + 3600;
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(buf, sizeof buf, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    VRT_SetHdr(sp, HDR_RESP, "\010Expires:", buf, vrt_magic_string_end);
  }C
  remove resp.http.Age;
}
