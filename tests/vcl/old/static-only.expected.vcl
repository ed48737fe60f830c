vcl 4.1;

backend static {
        .host = "10.0.3.3";
        .port = "81";
}

sub vcl_recv {
        // nothing here has a cookie
        unset req.http.cookie;
        unset req.http.authorization;
        if (req.method == "POST") {
                return (synth(405, "Nothing to post here"));
        }
        return (hash);
}

sub vcl_backend_response {
        unset beresp.http.set-cookie;
        set beresp.ttl = 6h;
        return (deliver);
}

sub vcl_synth {
        synthetic({"<h1>Error "} + resp.status + {"</h1>"});
        return (deliver);
}

sub vcl_backend_error {
        synthetic({"<h1>Error "} + beresp.status + {"</h1>"});
        return (deliver);
}
