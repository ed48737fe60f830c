vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_synth {
    if (resp.status == 750) {
        set resp.status = "301";  # <- refused
        set resp.http.Location = resp.reason;
        return (deliver);
    }
}
