vcl 4.1;

import std;

backend default { .host = "192.0.2.177"; .port = "80"; }

acl control { "192.0.2.178"; "::1"; }

sub ban_or_fail {
    if (!std.ban(req.http.X-Ban)) {
        return (synth(400, std.ban_error()));
    }
    return (synth(200, "Added: " + req.http.X-Ban));
}

sub vcl_recv {
    if (req.method != "BAN") {
        unset req.http.X-Ban;
    } else if (client.ip !~ control) {
        return (synth(403));
    } else {
        # Expressions on obj.* can be worked off in the background.
        if (req.http.X-Older-Than ~ "^[0-9]+[smhd]$") {
            set req.http.X-Ban = "obj.age > " + req.http.X-Older-Than + " && obj.http.X-Host == " + req.http.Host;
        } else {
            set req.http.X-Ban = "obj.http.X-Url ~ " + req.url + " && obj.http.X-Host == " + req.http.Host;
        }
        call ban_or_fail;
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.Host;
}

sub vcl_deliver {
    unset resp.http.X-Url;
    unset resp.http.X-Host;
}
