vcl 4.1;

backend default { .host = "192.0.2.182"; .port = "80"; }

sub vcl_backend_response {
    if (beresp.http.Content-Type ~ "^text/html") {
        if (beresp.http.Content-Encoding == "gzip") {
            set beresp.filters = "gunzip esi_gzip";
        } else {
            set beresp.filters = "esi gzip";
        }
    } elsif (beresp.filters ~ "gzip") {
        set beresp.http.X-Filters = beresp.filters;
    }
}

sub vcl_deliver {
    if (req.http.X-Raw && resp.filters ~ "esi") {
        set resp.filters = regsub(resp.filters, "esi ?", "");
    }
}
