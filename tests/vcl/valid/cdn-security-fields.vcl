vcl 4.1;

backend default { .host = "192.0.2.181"; .port = "80"; }

sub vcl_deliver {
    set resp.http.Strict-Transport-Security = "max-age=" + 365 * 24 * 3600;
    set resp.http.X-Frame-Options = "SAMEORIGIN";
    set resp.http.Referrer-Policy = "strict-origin-when-cross-origin";
    set resp.http.Permissions-Policy = {"geolocation=(), camera=(self "https://video.example.com")"};
    set resp.http.Content-Security-Policy =
        "default-src 'self'; " +
        "img-src 'self' data: https://img.example.com; " +
        "script-src 'self' 'unsafe-inline'; " +
        "report-uri /csp";
    unset resp.http.Server;
    unset resp.http.X-AspNet-Version;
    unset resp.http."X-Debug.Trace";
}
