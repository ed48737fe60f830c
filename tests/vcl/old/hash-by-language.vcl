# vcl 2
backend cms { .host = "10.17.0.1"; .port = "8080"; }

sub vcl_recv {
    // de, fr or the default
    if (req.http.Accept-Language ~ "^de") { set req.http.X-Lang = "de"; }
    elsif (req.http.Accept-Language ~ "^fr") { set req.http.X-Lang = "fr"; }
    else { set req.http.X-Lang = "en"; }

    if (req.request == "POST") { return (pass); }
    if (req.http.Cookie ~ "CMSSESSION=") { return (pass); }
    remove req.http.Cookie;
    return (lookup);
}

sub vcl_hash {
    set req.hash += req.url;
    set req.hash += req.http.host;
    if (!(req.url ~ "^/(img|css|js)/")) {
        set req.hash += req.http.X-Lang;
    }
    if (req.http.Accept-Encoding ~ "gzip") { set req.hash += "gzip"; }
    elsif (req.http.Accept-Encoding ~ "deflate") { set req.hash += "deflate"; }
    return (hash);
}

sub vcl_fetch {
    if (beresp.cacheable) {
        unset beresp.http.expires;
        set beresp.http.cache-control = "max-age=900";
        set beresp.ttl = 1w;
        set beresp.http.magicmarker = "1";
    }
}

sub vcl_deliver {
    if (resp.http.magicmarker) {
        unset resp.http.magicmarker;
        set resp.http.age = "0";
    }
}
