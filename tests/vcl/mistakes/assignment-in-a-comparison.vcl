# mend: ==
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.method = "POST") { # <- LINE
        return (pass);
    }
    if (req.http.Host == "beta.example.com") {
        set req.http.X-Variant = "beta";
    }
}
