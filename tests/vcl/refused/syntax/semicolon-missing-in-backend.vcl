# varnishd: line 6
vcl 4.1;

backend default {
    .host = "192.0.2.1"  # <- refused
    .port = "8080";
}
