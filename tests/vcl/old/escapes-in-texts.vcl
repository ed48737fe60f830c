# vcl 2
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    # spaces and quotes had to be written with percent signs
    if (req.http.User-Agent ~ "Offline%20Browser") {
        error 403 "Please%20do not copy the %22whole%22 site";
    }
    if (req.url ~ "%5c%5c") {
        set req.url = regsuball(req.url, "%5c%5c", "/");
    }
    if (req.request == "HEAD") { return (pass); }
}

sub vcl_error {
    if (obj.status == 403) {
        set obj.http.X-Note = "100%25 automatic";
    }
}
