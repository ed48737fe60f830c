vcl 4.1;

backend default { .host = "192.0.2.1"; }
backend images { .host = "192.0.2.2"; }

sub vcl_recv {
    if (req.url ~ "^/images/") {
        set req.backend_hint = "images";  # <- refused
    } elsif (req.url ~ "^/img/") {
        set req.backend_hint = images;
    }
}
