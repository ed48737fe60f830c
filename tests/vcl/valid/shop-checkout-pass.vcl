vcl 4.0;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "^/(checkout|basket|login|logout|account)(/|$|\?)") {
        return (pass);
    }
    if (req.http.Cookie ~ "logged_in=1") {
        return (pass);
    }
    unset req.http.Cookie;
}

sub vcl_backend_response {
    if (beresp.http.Set-Cookie && bereq.url !~ "^/(checkout|basket|login|logout|account)") {
        unset beresp.http.Set-Cookie;
    }
}
