vcl 4.1;

# Needs the flag `fold` of ACLs.

backend default { .host = "192.0.2.1"; .port = "8080"; }

acl inside +fold +log {
    "192.0.2.0"/25;
    "192.0.2.128"/25;
    "198.51.100.0"/24;
    "198.51.100.17";
}

acl as_written -fold {
    "203.0.113.0"/24;
}

sub vcl_recv {
    if (client.ip !~ inside && client.ip !~ as_written) {
        return (synth(403));
    }
}
