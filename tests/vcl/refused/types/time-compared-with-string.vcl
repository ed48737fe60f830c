vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (now > "Fri, 01 Jan 2027 00:00:00 GMT") {  # <- refused
        return (synth(410));
    }
}
