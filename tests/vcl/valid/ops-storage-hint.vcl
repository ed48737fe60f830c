vcl 4.0;

backend default { .host = "192.0.2.129"; .port = "80"; }

sub vcl_backend_response {
    if (bereq.url ~ "^/(images|video)/") {
        set beresp.storage_hint = "s0";
    }
    set beresp.http.X-Origin = beresp.backend.ip;
    set beresp.http.X-Hint = beresp.storage_hint;
}

sub vcl_recv {
    if (req.url ~ "\.(js|css|png)$") {
        set req.esi = false;
    }
    if (req.proto == "HTTP/1.0") {
        set req.proto = "HTTP/1.1";
    }
}

sub vcl_deliver {
    set resp.proto = "HTTP/1.1";
}
