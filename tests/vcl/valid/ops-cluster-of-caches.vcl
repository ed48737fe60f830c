vcl 4.1;

import std;
import directors;

# Each object has one home among the caches; a cache that is not its home
# asks that one instead of the origin.

probe cluster {
    .request =
        "GET /cluster-probe HTTP/1.1"
        "Host: cluster.invalid"
        "Connection: close";
    .interval = 1s;
    .timeout = 500ms;
    .window = 3;
    .threshold = 2;
    .initial = 2;
}

backend cache1 { .host = "192.0.2.141"; .port = "6081"; .probe = cluster; }
backend cache2 { .host = "192.0.2.142"; .port = "6081"; .probe = cluster; }
backend cache3 { .host = "192.0.2.143"; .port = "6081"; .probe = cluster; }
backend cache4 { .host = "192.0.2.144"; .port = "6081"; .probe = cluster; }

backend origin {
    .host = "192.0.2.150";
    .port = "8080";
    .max_connections = 100;
}

acl members {
    "192.0.2.141";
    "192.0.2.142";
    "192.0.2.143";
    "192.0.2.144";
}

sub vcl_init {
    new homes = directors.shard();
    homes.add_backend(cache1, ident="cache1");
    homes.add_backend(cache2, ident="cache2");
    homes.add_backend(cache3, ident="cache3");
    homes.add_backend(cache4, ident="cache4");
    homes.set_rampup(15s);
    homes.reconfigure();
}

sub vcl_recv {
    if (req.url == "/cluster-probe") {
        return (synth(200));
    }
    if (remote.ip ~ members) {
        # The other member has applied the rules already.
        set req.http.X-Cluster = "member";
        set req.hash_ignore_busy = true;
        return (hash);
    }
    unset req.http.X-Cluster;
}

sub vcl_recv {
    if (req.method == "PURGE") {
        return (synth(405, "Use a ban"));
    }
}

sub vcl_backend_fetch {
    set bereq.backend = homes.backend(by=URL, resolve=NOW);
    set bereq.http.X-Home = bereq.backend;
    if (bereq.http.X-Cluster || bereq.http.X-Home == server.identity || bereq.retries > 0) {
        set bereq.backend = origin;
        unset bereq.http.X-Home;
    }
    unset bereq.http.X-Cluster;
}

sub vcl_backend_response {
    if (bereq.backend == origin) {
        set beresp.http.X-Origin-Time = beresp.time;
        set beresp.grace = 1h;
    } else {
        # What the home has stored is kept here for a short while only.
        if (beresp.ttl > 10s) {
            set beresp.ttl = 10s;
        }
        set beresp.grace = 5s;
        set beresp.keep = 0s;
        if (beresp.http.X-Uncacheable) {
            set beresp.uncacheable = true;
        }
    }
    return (deliver);
}

sub vcl_backend_error {
    if (bereq.retries == 0) {
        return (retry);
    }
}

sub vcl_deliver {
    if (req.http.X-Cluster) {
        if (obj.uncacheable) {
            set resp.http.X-Uncacheable = "1";
        }
    } else {
        unset resp.http.X-Uncacheable;
        unset resp.http.X-Origin-Time;
    }
    set resp.http.X-Cache = resp.http.X-Cache + server.identity + ":" + obj.hits + " ";
}

sub vcl_synth {
    if (req.url == "/cluster-probe") {
        set resp.body = "ok";
        return (deliver);
    }
}
