# decision: last-use obj.last_use is gone and a stored object cannot be changed: the marks move to vcl_deliver, the time of the last use is lost
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.method == "GET") {
        unset req.http.cookie;
        return (hash);
    }
    return (pass);
}

sub vcl_backend_fetch {
    set bereq.http.X-Status = "miss";
}

sub vcl_deliver {
    # for the statistics
    if (obj.hits > 0) {
        set resp.http.X-Status = "hit";
    } else {
        set resp.http.X-Status = "miss";
    }
    set resp.http.X-Hits = obj.hits;
}
