vcl 4.0;

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = "hit, " + obj.hits;
    } else {
        set resp.http.X-Cache = "miss";
    }
}
