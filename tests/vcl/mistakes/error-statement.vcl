# mend: synth(
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.url ~ "/\.(git|svn|env)") {
        error 404 "Not found"; # <- LINE
    }
    if (req.url ~ "^/wp-login\.php") {
        return (pass);
    }
}
