# mend: "
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.http.Host == 'old.example.com') { # <- LINE
        set req.http.Host = "www.example.com";
    }
    if (req.http.Cookie ~ "sessionid=") {
        return (pass);
    }
}
