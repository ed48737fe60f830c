# varnishd: accepts
vcl 4.1;

import blob;

backend default { .host = "192.0.2.1"; }

sub vcl_init {
    new secret = blob.blob(HEX, "c0ffee-42");  # <- refused
}

sub vcl_deliver {
    set resp.http.X-Secret = secret.encode(BASE64);
}
