vcl 4.1;

backend default {
    .host = "192.0.2.127";
    .port = "http";
    .connect_timeout = 500ms;
    .first_byte_timeout = 0.5m;
    .between_bytes_timeout = 10s;
}

sub vcl_recv {
    set sess.timeout_idle = 30s;
    set sess.timeout_linger = 50ms;
    set sess.send_timeout = 10m;
    set sess.idle_send_timeout = 1m;
    if (req.url ~ "^/export/") {
        set sess.send_timeout = 1h;
        set sess.idle_send_timeout *= 2;
        return (pass);
    }
}

sub vcl_backend_fetch {
    if (bereq.url ~ "^/export/") {
        set bereq.connect_timeout = 5s;
        set bereq.first_byte_timeout = 5m;
        set bereq.between_bytes_timeout = bereq.first_byte_timeout / 10;
    } else {
        set bereq.first_byte_timeout -= 5s;
    }
}
