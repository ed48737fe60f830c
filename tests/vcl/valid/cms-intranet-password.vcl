vcl 4.1;

import blob;

backend default { .host = "10.1.2.3"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Authorization !~ "^Basic ") {
        return (synth(401, "Password, please"));
    }
    set req.http.X-User = regsub(
        blob.transcode(decoding=BASE64, encoding=IDENTITY,
                       encoded=regsub(req.http.Authorization, "^Basic ", "")),
        ":.*$", "");
    if (req.http.X-User != "intranet") {
        return (synth(401, "Password, please"));
    }
    unset req.http.Authorization;
}

sub vcl_synth {
    if (resp.status == 401) {
        set resp.http.WWW-Authenticate = {"Basic realm="Intranet", charset="UTF-8""};
        set resp.body = "";
        return (deliver);
    }
}
