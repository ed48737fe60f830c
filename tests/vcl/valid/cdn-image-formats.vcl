vcl 4.1;

backend images { .host = "192.0.2.174"; .port = "80"; }

sub vcl_recv {
    if (req.url ~ "(?i)\.(jpe?g|png)$") {
        if (req.http.Accept ~ "image/avif") {
            set req.http.X-Format = "avif";
        } elsif (req.http.Accept ~ "image/webp") {
            set req.http.X-Format = "webp";
        } else {
            unset req.http.X-Format;
        }
    }
}

sub vcl_hash {
    if (req.http.X-Format) {
        hash_data(req.http.X-Format);
    }
}

sub vcl_backend_fetch {
    if (bereq.http.X-Format) {
        set bereq.url = regsub(bereq.url, "\.[a-zA-Z]+$", "." + bereq.http.X-Format);
    }
}

sub vcl_backend_response {
    if (bereq.http.X-Format && beresp.status == 404) {
        # No such variant: the original instead.
        set bereq.url = regsub(bereq.url, "\.(avif|webp)$", ".jpg");
        unset bereq.http.X-Format;
        return (retry);
    }
    set beresp.http.Vary = "Accept";
}
