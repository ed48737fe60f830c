vcl 4.1;

backend default { .host = "192.0.2.175"; .port = "80"; }

acl balancers { "192.0.2.176"/29; }

sub vcl_recv {
    # The field is believed from our own balancers only.
    if (remote.ip !~ balancers) {
        unset req.http.X-Country;
    }
    if (req.http.X-Country !~ "^[A-Z]{2}$") {
        set req.http.X-Country = "ZZ";
    }
    if (req.http.X-Country ~ "^(AT|CH|DE|LI)$") {
        set req.http.X-Region = "dach";
    } elsif (req.http.X-Country ~ "^(DK|FI|IS|NO|SE)$") {
        set req.http.X-Region = "nordic";
    } else {
        set req.http.X-Region = "world";
    }
}

sub vcl_hash {
    hash_data(req.http.X-Region + "|");
}
