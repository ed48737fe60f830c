# varnishd: accepts
vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (req.url == "/nothing") {
        return (synth(42, "Nothing"));  # <- refused
    }
}
