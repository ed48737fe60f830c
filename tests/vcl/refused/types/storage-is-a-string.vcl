vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    if (bereq.url ~ "\.mp4$") {
        set beresp.storage = "Transient";  # <- refused
    }
}
