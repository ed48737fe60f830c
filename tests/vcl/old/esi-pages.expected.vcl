vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (req.url ~ "^/fragments/user") {
        return (pass);
    }
    unset req.http.Cookie;
}

sub vcl_backend_response {
    if (bereq.url ~ "^/fragments/") {
        set beresp.ttl = 5m;
    } else if (bereq.url == "/" || bereq.url ~ "\.html$") {
        set beresp.do_esi = true;                 /* pages are put together here */
        set beresp.ttl = 1h;
    }
}

sub vcl_synth {
    # a fragment that fails leaves a gap, nothing else
    if (req.url ~ "^/fragments/") {
        set resp.status = 200;
        synthetic({""});
        return (deliver);
    }
}

sub vcl_backend_error {
    # a fragment that fails leaves a gap, nothing else
    if (bereq.url ~ "^/fragments/") {
        set beresp.status = 200;
        synthetic({""});
        return (deliver);
    }
}
