# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.request == "GET") {
        remove req.http.cookie;
        return (lookup);
    }
    return (pass);
}

sub vcl_hit {
    # for the statistics
    set obj.http.X-Last-Use = obj.last_use;
    set obj.http.X-Status = "hit";
}

sub vcl_miss {
    set bereq.http.X-Status = "miss";
}

sub vcl_deliver {
    if (!resp.http.X-Status) {
        set resp.http.X-Status = "miss";
    }
    set resp.http.X-Hits = obj.hits;
}
