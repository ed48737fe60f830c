vcl 4.1;

import std;

backend default { .host = "192.0.2.33"; .port = "80"; }

acl backoffice { "192.0.2.32"/29; }

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ backoffice) {
            return (synth(403, "Forbidden"));
        }
        # Only digits, so that the expression cannot be extended.
        if (req.http.X-Product-Id !~ "^[0-9]{1,12}$") {
            return (synth(400, "Product number expected"));
        }
        if (std.ban("obj.http.X-Product-Id == " + req.http.X-Product-Id)) {
            return (synth(202, "Banned now"));
        } else {
            return (synth(400, std.ban_error()));
        }
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
}

sub vcl_deliver {
    unset resp.http.X-Url;
    unset resp.http.X-Product-Id;
}
