vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_deliver {
    unset resp.http.X-Generator;
    set resp.http.X-Frame-Options = ; # <- LINE
    set resp.http.Referrer-Policy = "same-origin";
}
