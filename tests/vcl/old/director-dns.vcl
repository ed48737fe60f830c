# vcl 3
# Every host of our network answers for its own name.
director network dns {
    .list = {
        .port = "80";
        .connect_timeout = 0.5s;
        "192.0.2.64"/31;
    }
    .ttl = 5m;
    .suffix = ".web.internal.example";
}

sub vcl_recv {
    set req.backend = network;
    if (req.request != "GET") {
        return (pass);
    }
    return (lookup);
}
