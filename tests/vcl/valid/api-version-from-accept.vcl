vcl 4.1;

import accept;

backend v1 { .host = "192.0.2.202"; }
backend v2 { .host = "192.0.2.203"; }

sub vcl_init {
    new media = accept.rule("application/vnd.example.v2+json");
    media.add("application/vnd.example.v1+json");
    media.add("application/vnd.example.v2+json");
    media.add("application/xml");
    media.remove("application/xml");
}

sub vcl_recv {
    set req.http.Accept = media.filter(req.http.Accept);
    if (req.http.Accept ~ "\.v1\+") {
        set req.backend_hint = v1;
    } else {
        set req.backend_hint = v2;
    }
}
