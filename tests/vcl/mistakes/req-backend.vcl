# mend: req.backend_hint
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }
backend blog { .host = "127.0.0.1"; .port = "8090"; }

sub vcl_recv {
    if (req.http.Host ~ "^blog\.") {
        set req.backend = blog; # <- LINE
    } else {
        set req.backend_hint = default;
    }
    unset req.http.X-Backend;
}
