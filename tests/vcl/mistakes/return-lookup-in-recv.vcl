# mend: hash
vcl 4.1;

backend shop {
    .host = "10.1.2.3";
    .port = "80";
    .max_connections = 200;
}

sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.url ~ "^/(cart|checkout|account)") {
        return (pass);
    }
    unset req.http.Cookie;
    return (lookup); # <- LINE
}
