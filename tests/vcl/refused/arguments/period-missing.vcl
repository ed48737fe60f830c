vcl 4.1;

import vsthrottle;

backend default { .host = "192.0.2.1"; }

sub vcl_deliver {
    set resp.http.X-Left = vsthrottle.remaining(client.identity, 10);  # <- refused
}
