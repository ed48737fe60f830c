vcl 4.0;

import std;
import directors;
import blob;

backend a { .host = "192.0.2.14"; }
backend b { .host = "192.0.2.15"; }

sub vcl_init {
    new wikis = directors.shard();
    wikis.add_backend(a);
    wikis.add_backend(b);
    wikis.reconfigure();
}

sub vcl_recv {
    set req.backend_hint = wikis.backend(by=KEY, key=wikis.key(req.http.Cookie + req.url));
}

sub vcl_deliver {
    # The key of the object, as hexadecimal digits.
    set resp.http.X-Key = blob.encode(HEX, LOWER, req.hash);
    std.log("key " + blob.encode(encoding=BASE64URLNOPAD, blob=blob.sub(req.hash, 8B, 0B)));
}
