vcl 4.0;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

acl staff {
    "10.0.0.0"/8;
    ! "10.99.0.0"/16;
    "2001:db8:1::"/64;
}

sub vcl_recv {
    if (std.file_exists("/etc/varnish/maintenance") && client.ip !~ staff) {
        return (synth(700, "Back soon"));
    }
}

sub vcl_synth {
    if (resp.status == 700) {
        set resp.status = 503;
        set resp.http.Content-Type = "text/html; charset=utf-8";
        set resp.http.Retry-After = "300";
        synthetic({"<!doctype html>
<html lang="en">
  <head><title>"} + resp.reason + {"</title></head>
  <body>
    <h1>We are stocking the shelves</h1>
    <p>The shop opens again at "} + (now + 15m) + {".</p>
  </body>
</html>
"});
        return (deliver);
    }
}
