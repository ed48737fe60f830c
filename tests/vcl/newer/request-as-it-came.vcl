vcl 4.1;

# Needs `req0.*`, the hook `vcl_req_url` and the storage of responses.

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_req_url {
    if (req.url ~ "^\*") {
        return (synth(400, "Path expected"));
    }
}

sub vcl_deliver {
    if (req.url != req0.url) {
        set resp.http.X-Rewritten = req0.url;
    }
    set resp.http.X-Storage = resp.storage;
}
