# mend: set
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.http.User-Agent ~ "iPhone|Android.*Mobile") {
        req.http.X-Device = "phone"; # <- LINE
    } else {
        set req.http.X-Device = "desktop";
    }
}

sub vcl_hash {
    hash_data(req.http.X-Device);
}
