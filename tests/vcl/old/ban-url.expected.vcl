vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

acl may_ban {
    "localhost";
    "192.168.77.0"/24; /* the editors' floor */
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (!client.ip ~ may_ban) {
            return (synth(405, "Not allowed"));
        }
        ban("req.url ~ " + req.url);
        return (synth(200, "Banned"));
    }
    elsif (req.method == "BANALL") {
        if (!client.ip ~ may_ban) {
            return (synth(405, "Not allowed"));
        }
        ban("req.http.host ~ .");
        return (synth(200, "Banned all"));
    }
}

sub vcl_synth {
    set resp.http.Content-Type = "text/plain";
    synthetic({"[ban] "} + resp.reason);
    return (deliver);
}

sub vcl_backend_error {
    set beresp.http.Content-Type = "text/plain";
    synthetic({"[ban] "} + beresp.reason);
    return (deliver);
}
