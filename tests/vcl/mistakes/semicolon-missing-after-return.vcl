# mend: ;
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/admin") {
        return (pass) # <- LINE
    }
    if (req.url ~ "^/api/stream") {
        return (pipe);
    }
}

sub vcl_pipe {
    set bereq.http.Connection = "close";
}
