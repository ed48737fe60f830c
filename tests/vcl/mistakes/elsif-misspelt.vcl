# mend: elsif
vcl 4.1;

backend www { .host = "10.0.0.1"; }
backend api { .host = "10.0.0.2"; }
backend img { .host = "10.0.0.3"; }

sub vcl_recv {
    if (req.http.Host == "www.example.org") {
        set req.backend_hint = www;
    } elsfi (req.http.Host == "api.example.org") { # <- LINE
        set req.backend_hint = api;
    } else {
        set req.backend_hint = img;
    }
}
