vcl 4.1;

backend front { .host = "192.0.2.40"; .port = "8080"; }
backend rear  { .host = "192.0.2.41"; .port = "8080"; }

sub pick_backend {
    if (req.url ~ "^/rear/") {
        set req.backend_hint = rear;
    } else {
        set req.backend_hint = front;
    }
}
