vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_synth {
    set resp.body = "one  # <- refused
two";
}
