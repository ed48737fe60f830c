# mend: .connect_timeout
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
    .connection_timeout = 3s; # <- LINE
    .between_bytes_timeout = 20s;
}

sub vcl_backend_response {
    set beresp.keep = 1d;
}
