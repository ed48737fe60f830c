vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_pipe {
    set bereq.connect_timeout = 1s;
    set bereq.first_byte_timeout = 10s;  # <- refused
}
