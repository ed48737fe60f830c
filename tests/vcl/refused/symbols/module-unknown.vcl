vcl 4.1;

import cookies;  # <- refused

backend default { .host = "192.0.2.1"; }
