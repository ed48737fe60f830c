# mend: {"
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_synth {
    if (resp.status == 451) {
        set resp.http.Content-Type = "text/html; charset=utf-8";
        synthetic("<p class="legal">This page may not be shown here.</p>"); # <- LINE
        return (deliver);
    }
}

sub vcl_recv {
    if (req.url ~ "^/withheld/") {
        return (synth(451));
    }
}
