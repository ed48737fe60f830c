vcl 4.1;

backend default { .host = "192.0.2.1"; }

# One of the two that call this may not pass.
sub pass_if_asked {
    if (req.http.X-Pass) {
        return (pass);  # <- refused
    }
}

sub vcl_recv { call pass_if_asked; }

sub vcl_deliver { call pass_if_asked; }
