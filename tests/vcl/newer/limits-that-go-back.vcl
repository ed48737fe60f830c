vcl 4.1;

# Needs `unset` of time limits.

backend default {
    .host = "192.0.2.1";
    .port = "8080";
    .first_byte_timeout = 5s;
}

sub vcl_recv {
    if (req.restarts > 0) {
        unset sess.send_timeout;
        unset sess.idle_send_timeout;
    } else {
        set sess.send_timeout = 20s;
    }
}

sub vcl_backend_fetch {
    if (bereq.retries > 0) {
        unset bereq.first_byte_timeout;
        unset bereq.between_bytes_timeout;
        unset bereq.connect_timeout;
    }
}
