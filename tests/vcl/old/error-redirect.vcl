# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    # without www
    if (req.http.host == "example.com") {
        error 750 "http://www.example.com" + req.url;
    }
    # moved for good
    if (req.url ~ "^/old-catalogue") {
        error 751 "http://" + req.http.host + "/catalogue";
    }
    # phones have a site of their own
    if (req.http.User-Agent ~ "iPhone|Android.*Mobile" && req.http.Cookie !~ "nomobile") {
        error 752 "http://m.example.com" + req.url;
    }
}

sub vcl_error {
    if (obj.status == 750 || obj.status == 751) {
        set obj.http.Location = obj.response;
        set obj.status = 301;
        set obj.response = "Moved Permanently";
        return (deliver);
    }
    if (obj.status == 752) {
        set obj.http.Location = obj.response;
        set obj.status = 302;
        set obj.response = "Found";
        return (deliver);
    }
}
