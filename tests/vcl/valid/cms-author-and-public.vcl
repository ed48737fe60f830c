vcl 4.0;

backend public { .host = "192.0.2.55"; .port = "8080"; }
backend author { .host = "192.0.2.56"; .port = "8080"; }

acl office { "10.20.0.0"/16; }

sub vcl_recv {
    if (req.http.host ~ "^author\.") {
        if (client.ip !~ office) {
            return (synth(403, "Authors only"));
        }
        set req.backend_hint = author;
        return (pass);
    }
    set req.backend_hint = public;
    if (req.url ~ "^/\.(magnolia|resources/admin)") {
        return (synth(404));
    }
}
