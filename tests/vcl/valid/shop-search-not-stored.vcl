vcl 4.1;

backend default { .host = "192.0.2.61"; }

sub vcl_backend_response {
    if (bereq.url ~ "^/search\?" && beresp.http.X-Results == "0") {
        # An empty result is remembered as not worth storing.
        return (pass(10m));
    }
    if (bereq.url ~ "^/search" && beresp.status >= 400) {
        return (pass);
    }
}
