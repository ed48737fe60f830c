vcl 4.1;

backend default { .host = "192.0.2.1"; }

acl office {  # <- refused
    "192.0.2.0"/24;
}
