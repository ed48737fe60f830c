# mend: unset
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    if (req.url ~ "\.(gif|jpg|png|ico)(\?.*)?$") {
        remove req.http.Cookie; # <- LINE
    }
}

sub vcl_backend_response {
    if (bereq.url ~ "\.(gif|jpg|png|ico)(\?.*)?$") {
        unset beresp.http.Set-Cookie;
    }
}
