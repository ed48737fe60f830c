vcl 4.0;

backend default {
    .host = "192.0.2.121";
    .port = "8080";
    .probe = {
        .request =
            "OPTIONS * HTTP/1.1"
            "Host: app.example.com"
            "Accept: */*"
            "User-Agent: cache-probe"
            "Connection: close";
        .expected_response = 204;
        .timeout = 2s;
        .interval = 15s;
        .initial = 2;
        .window = 4;
        .threshold = 3;
    }
}
