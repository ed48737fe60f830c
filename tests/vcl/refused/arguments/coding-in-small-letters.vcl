vcl 4.1;

import blob;

backend default { .host = "192.0.2.1"; }

sub vcl_deliver {
    set resp.http.X-Key = blob.encode(hex, blob=req.hash);  # <- refused
}
