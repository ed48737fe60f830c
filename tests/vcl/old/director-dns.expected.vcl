# decision: dns-director directors of the kind dns are gone: the module dynamic looks names up, or each host is a backend of its own, as here
vcl 4.1;

# Every host of our network answers for its own name.
backend network64 {
    .host = "192.0.2.64";
    .port = "80";
    .connect_timeout = 0.5s;
}
backend network65 {
    .host = "192.0.2.65";
    .port = "80";
    .connect_timeout = 0.5s;
}

sub vcl_recv {
    if (req.http.Host ~ "^a\.") {
        set req.backend_hint = network64;
    } else {
        set req.backend_hint = network65;
    }
    if (req.method != "GET") {
        return (pass);
    }
    return (hash);
}
