vcl 4.0;

backend default  { .host = "192.0.2.190"; .port = "80"; }
backend customer1 { .host = "192.0.2.191"; .port = "80"; .host_header = "www.one.example"; }
backend customer2 { .host = "192.0.2.192"; .port = "80"; }
backend customer3 { .host = "2001:db8::193"; .port = "80"; }

sub vcl_recv {
    if (req.http.host == "www.one.example" || req.http.host == "one.example") {
        set req.backend_hint = customer1;
    }
    else if (req.http.host ~ "(^|\.)two\.example$") {
        set req.backend_hint = customer2;
    }
    elseif (req.http.host ~ "(^|\.)three\.example$") {
        set req.backend_hint = customer3;
    }
    else {
        set req.backend_hint = default;
    }
}

sub vcl_backend_fetch {
    if (bereq.backend == customer1) {
        unset bereq.http.host;
    }
}
