vcl 4.1;

backend cms { .host = "10.17.0.1"; .port = "8080"; }

sub vcl_recv {
    // de, fr or the default
    if (req.http.Accept-Language ~ "^de") { set req.http.X-Lang = "de"; }
    elsif (req.http.Accept-Language ~ "^fr") { set req.http.X-Lang = "fr"; }
    else { set req.http.X-Lang = "en"; }

    if (req.method == "POST") { return (pass); }
    if (req.http.Cookie ~ "CMSSESSION=") { return (pass); }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_hash {
    hash_data(req.url);
    hash_data(req.http.host);
    if (!(req.url ~ "^/(img|css|js)/")) {
        hash_data(req.http.X-Lang);
    }
    if (req.http.Accept-Encoding ~ "gzip") { hash_data("gzip"); }
    elsif (req.http.Accept-Encoding ~ "deflate") { hash_data("deflate"); }
    return (lookup);
}

sub vcl_backend_response {
    if (beresp.ttl > 0s) {
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
