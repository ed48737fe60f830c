vcl 4.1;

probe slow {  # <- refused
    .interval = 1m;
}

backend default {
    .host = "192.0.2.1";
    .probe = { .url = "/"; }
}
