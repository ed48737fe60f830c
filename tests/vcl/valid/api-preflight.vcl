vcl 4.0;

backend default { .host = "192.0.2.204"; .port = "8080"; }

sub vcl_recv {
    if (req.method == "OPTIONS") {
        if (req.http.Origin != "https://app.example.com") {
            return (synth(403, "Origin not allowed"));
        }
        return (synth(200, "OK"));
    }
}

sub vcl_synth {
    if (req.method == "OPTIONS" && resp.status == 200) {
        set resp.http.Access-Control-Allow-Origin = req.http.Origin;
        set resp.http.Allow = "GET, HEAD, OPTIONS";
        set resp.http.Content-Length = "0";
        return (deliver);
    }
}
