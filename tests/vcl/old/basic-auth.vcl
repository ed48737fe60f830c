# vcl 3
backend staging { .host = "10.26.0.1"; .port = "80"; }

sub vcl_recv {
    # editor:secret
    if (!req.http.Authorization ~ "Basic ZWRpdG9yOnNlY3JldA==") {
        error 401 "Restricted";
    }
    remove req.http.Authorization;
    if (req.request == "PUT" || req.request == "POST") { return (pass); }
    return (lookup);
}

sub vcl_error {
    if (obj.status == 401) {
        set obj.http.Content-Type = "text/plain";
        set obj.http.WWW-Authenticate = {"Basic realm="Staging""};
        synthetic {"Please log in."};
        return (deliver);
    }
}
