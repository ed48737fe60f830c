# mend: "8080"
vcl 4.1;

probe ready {
    .url = "/ready";
    .interval = 5s;
}

backend default {
    .host = "127.0.0.1";
    .port = 8080; # <- LINE
    .probe = ready;
}

sub vcl_recv {
    unset req.http.Proxy;
}
