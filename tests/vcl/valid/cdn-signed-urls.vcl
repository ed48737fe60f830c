vcl 4.1;

import blob;
import std;

backend store { .host = "192.0.2.173"; .port = "80"; }

sub vcl_init {
    new marker = blob.blob(BASE64, "djEtc2lnbmVk");
    new other = blob.blob(encoded="7632", decoding=HEX);
}

sub vcl_recv {
    # /EXPIRES/MARKER/path
    if (req.url !~ "^/[0-9]{10}/[A-Za-z0-9_-]+/") {
        return (synth(403, "Unsigned"));
    }
    if (std.time(regsub(req.url, "^/([0-9]{10})/.*$", "\1"), now - 1s) < now) {
        return (synth(410, "Expired"));
    }
    if (!blob.equal(marker.get(),
        blob.decode(decoding=BASE64URLNOPAD, encoded=regsub(req.url, "^/[0-9]+/([^/]+)/.*$", "\1")))) {
        return (synth(403, "Wrong signature"));
    }
    if (blob.same(marker.get(), other.get()) || blob.length(marker.get()) == 0) {
        return (synth(500));
    }
    set req.http.X-Marker = marker.encode(HEX, UPPER);
    set req.http.X-First = blob.encode(blob=blob.sub(:aGVsbG8gd29ybGQ=:, 5B));
    set req.url = regsub(req.url, "^/[0-9]+/[^/]+", "");
}
