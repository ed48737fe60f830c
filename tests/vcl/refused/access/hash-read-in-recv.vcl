vcl 4.1;

import blob;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    set req.http.X-Key = blob.encode(HEX, blob=req.hash);  # <- refused
}
