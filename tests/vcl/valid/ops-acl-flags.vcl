vcl 4.1;

backend default none;

acl with_log +log {
    "192.0.2.0"/24;
}

acl in_a_table +table -log {
    "198.51.100.0"/24;
    "198.51.100.7";
    "203.0.113.0"/24;
    !"203.0.113.128"/25;
}

acl host_bits -pedantic {
    "10.11.12.13"/8;
    "2001:db8::1"/32;
}

acl several +log +table -pedantic {
    "172.16.5.5"/12;
    ("localhost");
    !("127.0.0.2");
}

acl strict +pedantic {
    "127.0.0.0/8";
    "::1";
}

acl nobody { }

sub vcl_recv {
    if (client.ip ~ with_log || remote.ip ~ in_a_table) {
        return (pass);
    }
    if (server.ip ~ host_bits && !(client.ip ~ several)) {
        return (synth(403));
    }
    if (local.ip !~ strict || client.ip ~ nobody) {
        return (synth(404));
    }
}
