vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub normalise {
    set req.http.Host = req.http.Host.lower();
}

sub vcl_recv {
    call normalise;
    call normalize;  # <- refused
}
