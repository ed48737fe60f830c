vcl 4.1;

import directors;

backend one { .host = "192.0.2.1"; }

sub vcl_init {
    new pool = directors.round_robin(one);  # <- refused
}
