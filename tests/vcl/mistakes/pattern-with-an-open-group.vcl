# mend: )
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/(de|fr|it/") { # <- LINE
        set req.http.X-Lang = regsub(req.url, "^/(de|fr|it)/.*$", "\1");
    } else {
        set req.http.X-Lang = "en";
    }
}
