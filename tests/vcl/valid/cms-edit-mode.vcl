vcl 4.1;

backend live  { .host = "198.51.100.1"; }
backend draft { .host = "198.51.100.2"; }

acl newsroom { "198.51.100.128"/25; }

sub vcl_recv {
    if (req.http.X-Edit-Mode && client.ip ~ newsroom) {
        set req.backend_hint = draft;
        return (pass);
    }
    unset req.http.X-Edit-Mode;
    set req.backend_hint = live;
}

sub vcl_pass {
    # What is edited must be fetched fresh from the server of drafts.
    set req.http.Cache-Control = "no-cache";
    return (fetch);
}
