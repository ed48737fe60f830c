vcl 4.1;

backend default { .host = "192.0.2.1"; }

sub vcl_hit {
    if (req.hash == :aGVsbG8=:) {  # <- refused
        return (pass);
    }
}
