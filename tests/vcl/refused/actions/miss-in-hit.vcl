vcl 4.0;

backend default { .host = "192.0.2.1"; }

sub vcl_hit {
    if (obj.age > 1h) {
        return (miss);  # <- refused
    }
}
