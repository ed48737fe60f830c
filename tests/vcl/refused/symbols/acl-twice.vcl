vcl 4.1;

backend default { .host = "192.0.2.1"; }

acl office { "192.0.2.0"/24; }
acl office { "198.51.100.0"/24; }  # <- refused

sub vcl_recv {
    if (client.ip ~ office) { return (pass); }
}
