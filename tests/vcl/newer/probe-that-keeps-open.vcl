vcl 4.1;

# Needs `.expect_close`.

probe keeps_open {
    .url = "/alive";
    .expect_close = false;
    .interval = 2s;
    .timeout = 1s;
}

backend default {
    .host = "192.0.2.1";
    .port = "8080";
    .probe = keeps_open;
}
