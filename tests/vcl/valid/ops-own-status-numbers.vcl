vcl 4.1;

backend default none;

sub vcl_recv {
    if (req.url ~ "^/moved/") {
        return (synth(10301, "/new" + regsub(req.url, "^/moved", "")));
    }
    if (req.url ~ "^/teapot") {
        return (synth(418, "I'm a teapot"));
    }
    if (req.url ~ "^/forbidden") {
        return (synth(20403));
    }
    return (synth(404));
}

sub vcl_synth {
    if (resp.status == 10301) {
        set resp.http.Location = resp.reason;
        set resp.reason = "Moved Permanently";
        return (deliver);
    } elseif (resp.status / 10000 == 2) {
        set resp.status = resp.status % 1000;
        set resp.body = "Refused by rule 2" + {"
"};
        return (deliver);
    }
    set resp.body = "";
    set resp.body += "" + resp.status + " ";
    set resp.body += resp.reason;
    return (deliver);
}
