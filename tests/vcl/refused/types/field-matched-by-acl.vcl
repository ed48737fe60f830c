vcl 4.1;

backend default { .host = "192.0.2.1"; }

acl office { "192.0.2.0"/24; }

sub vcl_recv {
    if (req.http.X-Forwarded-For ~ office) {  # <- refused
        return (pass);
    }
    if (client.ip ~ office) {
        return (pass);
    }
}
