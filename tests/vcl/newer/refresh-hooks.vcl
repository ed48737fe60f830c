vcl 4.1;

# Needs the hooks of the built-in `vcl_backend_refresh`.

backend default { .host = "192.0.2.1"; .port = "8080"; }

sub vcl_refresh_status {
    # Stale objects of any status are merged, not only those with 200.
    return;
}

sub vcl_refresh_conditions {
    if (bereq.http.X-Keep-Conditions) {
        return (beresp);
    }
}

sub vcl_refresh_valid {
    if (obj_stale.uncacheable) {
        return (error(503, "Stale"));
    }
}
