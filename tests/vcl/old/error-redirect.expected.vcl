vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    # without www
    if (req.http.host == "example.com") {
        return (synth(750, "http://www.example.com" + req.url));
    }
    # moved for good
    if (req.url ~ "^/old-catalogue") {
        return (synth(751, "http://" + req.http.host + "/catalogue"));
    }
    # phones have a site of their own
    if (req.http.User-Agent ~ "iPhone|Android.*Mobile" && req.http.Cookie !~ "nomobile") {
        return (synth(752, "http://m.example.com" + req.url));
    }
}

sub vcl_synth {
    if (resp.status == 750 || resp.status == 751) {
        set resp.http.Location = resp.reason;
        set resp.status = 301;
        set resp.reason = "Moved Permanently";
        return (deliver);
    }
    if (resp.status == 752) {
        set resp.http.Location = resp.reason;
        set resp.status = 302;
        set resp.reason = "Found";
        return (deliver);
    }
}
