vcl 4.1;

import vsthrottle;

backend default { .host = "192.0.2.1"; }

sub vcl_recv {
    if (vsthrottle.is_denied(client.identity, limits = 10, period = 1s)) {  # <- refused
        return (synth(429));
    }
}
