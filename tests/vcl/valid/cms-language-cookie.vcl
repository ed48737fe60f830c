vcl 4.0;

backend default { .host = "192.0.2.51"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Cookie ~ "lang=") {
        set req.http.X-Lang = regsub(req.http.Cookie, "^(.*; )?lang=([a-z]{2}).*$", "\2");
    } elseif (req.http.Accept-Language ~ "^de") {
        set req.http.X-Lang = "de";
    } elseif (req.http.Accept-Language ~ "^nl") {
        set req.http.X-Lang = "nl";
    } else {
        set req.http.X-Lang = "en";
    }
    unset req.http.Cookie;
}

sub vcl_hash { hash_data(req.http.X-Lang); }

sub vcl_backend_fetch { set bereq.http.Accept-Language = bereq.http.X-Lang; }
