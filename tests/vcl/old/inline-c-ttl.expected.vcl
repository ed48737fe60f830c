# decision: inline-c the C code reads a header as a number of seconds; std.duration does it
vcl 4.1;

import std;

backend app {
    .host = "192.168.4.20";
    .port = "8000";
}

sub vcl_recv {
    if (req.method != "GET") {
        return (pass);
    }
    return (hash);
}

sub vcl_backend_response {
    # The application says in X-TTL how many seconds are good for us.
    if (beresp.http.X-TTL) {
        set beresp.ttl = std.duration(beresp.http.X-TTL + "s", 0s);
        unset beresp.http.X-TTL;
        return (deliver);
    }
}
