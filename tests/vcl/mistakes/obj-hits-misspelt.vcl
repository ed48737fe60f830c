# mend: obj.hits
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_deliver {
    if (obj.uncacheable) {
        set resp.http.X-Cache = "uncacheable";
    } else {
        set resp.http.X-Cache = "hits " + obj.hit; # <- LINE
    }
}
