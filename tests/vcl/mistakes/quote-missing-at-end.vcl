# mend: "
# line: 11
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_deliver {
    set resp.http.Strict-Transport-Security = "max-age=31536000;
    set resp.http.X-Content-Type-Options = "nosniff";
    unset resp.http.Server;
}
