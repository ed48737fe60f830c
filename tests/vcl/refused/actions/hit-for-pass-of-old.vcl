vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_backend_response {
    if (beresp.http.Set-Cookie) {
        return (hit_for_pass);  # <- refused
    }
}
