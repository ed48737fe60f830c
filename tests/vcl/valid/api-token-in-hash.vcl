vcl 4.1;

import blob;
import std;

backend default { .host = "192.0.2.207"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Authorization ~ "^Bearer [^.]+\.[^.]+\.[^.]+$") {
        # The payload of the token is its middle part.
        set req.http.X-Claims = blob.transcode(BASE64URLNOPAD, IDENTITY,
            encoded=regsub(req.http.Authorization, "^Bearer [^.]+\.([^.]+)\..*$", "\1"));
        if (req.http.X-Claims ~ {""role"\s*:\s*"reader""}) {
            set req.http.X-Role = "reader";
        } else {
            return (pass);
        }
        unset req.http.X-Claims;
        return (hash);
    }
    set req.http.X-Role = "nobody";
}

sub vcl_hash {
    hash_data(req.http.X-Role);
}
