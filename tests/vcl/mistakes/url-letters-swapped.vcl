# mend: req.url
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    # The login pages are never stored.
    if (req.ulr ~ "^/(login|logout)") { # <- LINE
        return (pass);
    }
    unset req.http.X-Debug;
}
