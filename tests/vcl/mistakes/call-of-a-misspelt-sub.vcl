# mend: normalize_accept
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub normalize_accept {
    if (req.http.Accept ~ "image/webp") {
        set req.http.X-Webp = "1";
    } else {
        unset req.http.X-Webp;
    }
}

sub vcl_recv {
    call normalise_accept; # <- LINE
    if (req.url ~ "\.(jpe?g|png)$") {
        call normalize_accept;
    }
}
