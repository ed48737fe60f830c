# mend: !~
vcl 4.1;

acl office {
    "203.0.113.0"/24;
    "2001:db8:1::"/48;
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/intranet" && client.ip ~! office) { # <- LINE
        return (synth(403, "Only from the office"));
    }
}
