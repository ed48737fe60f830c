vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    # spaces and quotes had to be written with percent signs
    if (req.http.User-Agent ~ "Offline Browser") {
        return (synth(403, {"Please do not copy the "whole" site"}));
    }
    if (req.url ~ "\\") {
        set req.url = regsuball(req.url, "\\", "/");
    }
    if (req.method == "HEAD") { return (pass); }
}

sub vcl_synth {
    if (resp.status == 403) {
        set resp.http.X-Note = "100% automatic";
    }
}
