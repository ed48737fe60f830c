vcl 4.1;

backend speaks_proxy {
    .host = "192.0.2.131";
    .port = "8443";
    .proxy_header = 2;
}

backend wants_greeting {
    .host = "192.0.2.132";
    .port = "8080";
    .preamble = :R1JFRVRJTkcgMQ0K:;
}

backend on_v6 {
    .host = "[2001:db8::17]:8080";
    .proxy_header = 1;
}

sub vcl_recv {
    if (req.http.host == "a.example.com") {
        set req.backend_hint = speaks_proxy;
    } elif (req.http.host == "b.example.com") {
        set req.backend_hint = wants_greeting;
    } else {
        set req.backend_hint = on_v6;
    }
}
