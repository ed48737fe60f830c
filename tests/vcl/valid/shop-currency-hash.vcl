vcl 4.1;

backend default { .host = "198.51.100.7"; .port = "80"; }

sub vcl_recv {
    # One of the currencies that the shop knows; anything else is EUR.
    if (req.http.Cookie ~ "currency=(EUR|USD|GBP|CHF)") {
        set req.http.X-Currency = regsub(req.http.Cookie, "^.*currency=([A-Z]{3}).*$", "\1");
    } else {
        set req.http.X-Currency = "EUR";
    }
    if (req.url !~ "^/(cart|account)") {
        unset req.http.Cookie;
    }
}

sub vcl_hash {
    hash_data(req.http.X-Currency);
}

sub vcl_backend_response {
    if (!beresp.http.Vary) {
        set beresp.http.Vary = "X-Currency";
    } elsif (beresp.http.Vary !~ "X-Currency") {
        set beresp.http.Vary = beresp.http.Vary + ", X-Currency";
    }
}
