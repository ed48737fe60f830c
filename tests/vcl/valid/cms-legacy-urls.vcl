vcl 4.0;

backend default { .host = "192.0.2.59"; .port = "8080"; }

sub vcl_recv {
    if (req.url ~ "^/index\.php\?page=[a-z0-9-]+$") {
        return (synth(720, regsub(req.url, "^/index\.php\?page=([a-z0-9-]+)$", "/\1/")));
    } elsif (req.url ~ "^/article/([0-9]+)\.html$") {
        return (synth(720, regsub(req.url, "^/article/([0-9]+)\.html$", "/news/\1")));
    } elsif (req.url ~ "^/~[a-z]+/") {
        return (synth(410, "Gone"));
    } elsif (req.url ~ "//") {
        return (synth(720, regsuball(req.url, "/{2,}", "/")));
    }
}

sub vcl_synth {
    if (resp.status == 720) {
        set resp.http.Location = "https://" + req.http.host + resp.reason;
        set resp.status = 301;
        return (deliver);
    }
}
