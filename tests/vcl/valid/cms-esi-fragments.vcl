vcl 4.1;

import std;

backend default { .host = "192.0.2.52"; .port = "8080"; }

sub vcl_recv {
    set req.http.Surrogate-Capability = "sandbox=ESI/1.0";

    if (req.esi_level > 0) {
        # A fragment sees the URL of its page.
        set req.http.X-Page = req_top.url;
        if (req.esi_level >= 3) {
            return (synth(508, "Too deep"));
        }
        if (req.esi_level % 2 == 1 && req_top.http.Cookie) {
            set req.http.X-Odd-Level = "1";
        }
    } else {
        unset req.http.X-Page;
    }
}

sub vcl_backend_response {
    if (beresp.http.Surrogate-Control ~ {"content="ESI/1\.0""}) {
        unset beresp.http.Surrogate-Control;
        set beresp.do_esi = true;
    }
}

sub vcl_deliver {
    if (obj.can_esi && req_top.method == "HEAD") {
        set resp.do_esi = false;
    }
    if (req.esi_level == 0) {
        std.log("page " + req_top.url + " in " + (now - req_top.time) + " s");
    }
}
