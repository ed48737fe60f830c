vcl 4.1;

import std;

backend app { .host = "192.0.2.54"; .port = "8080"; }

# The hash of the user's roles is fetched first; then the request is restarted with it.
sub vcl_recv {
    if (req.restarts == 0) {
        unset req.http.X-User-Context-Hash;
        if (!req.http.Cookie && !req.http.Authorization) {
            set req.http.X-User-Context-Hash = "anonymous";
        } elsif (req.method == "GET" || req.method == "HEAD") {
            set req.http.X-Original-Url = req.url;
            set req.http.X-Original-Accept = req.http.Accept;
            set req.http.Accept = "application/vnd.example.user-context-hash";
            set req.url = "/_context_hash";
            return (hash);
        }
    } elsif (req.restarts > 2) {
        return (synth(503, "Too many restarts"));
    }
    return (hash);
}

sub vcl_hash {
    if (req.url == "/_context_hash") {
        hash_data(req.http.Cookie);
        hash_data(req.http.Authorization);
    } else {
        hash_data(req.http.X-User-Context-Hash);
    }
}

sub vcl_backend_response {
    if (bereq.http.Accept == "application/vnd.example.user-context-hash" && beresp.status >= 500) {
        return (abandon);
    }
}

sub vcl_deliver {
    if (req.restarts == 0
        && resp.http.content-type ~ "^application/vnd\.example\.user-context-hash") {
        set req.http.X-User-Context-Hash = resp.http.X-User-Context-Hash;
        set req.url = req.http.X-Original-Url;
        set req.http.Accept = req.http.X-Original-Accept;
        unset req.http.X-Original-Url;
        unset req.http.X-Original-Accept;
        return (restart);
    }
    set resp.http.Vary = regsub(resp.http.Vary, "(?i),? *x-user-context-hash *", "");
    if (resp.http.Vary == "") {
        unset resp.http.Vary;
    }
}
