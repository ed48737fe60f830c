# varnishd: line 10
vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {  # <- refused
    if (req.method == "POST") {
        return (pass);
    }

