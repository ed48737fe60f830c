vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub strip_query {  # <- refused
    set req.url = regsub(req.url, "\?.*$", "");
}

sub vcl_recv {
    unset req.http.Cookie;
}
