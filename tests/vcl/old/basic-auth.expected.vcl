vcl 4.1;

backend staging { .host = "10.26.0.1"; .port = "80"; }

sub vcl_recv {
    # editor:secret
    if (!req.http.Authorization ~ "Basic ZWRpdG9yOnNlY3JldA==") {
        return (synth(401, "Restricted"));
    }
    unset req.http.Authorization;
    if (req.method == "PUT" || req.method == "POST") { return (pass); }
    return (hash);
}

sub vcl_synth {
    if (resp.status == 401) {
        set resp.http.Content-Type = "text/plain";
        set resp.http.WWW-Authenticate = {"Basic realm="Staging""};
        synthetic({"Please log in."});
        return (deliver);
    }
}
