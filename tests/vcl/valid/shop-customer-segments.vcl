vcl 4.1;

import cookie;

backend default {
    .host = "192.0.2.44";
    .port = "9000";
    .max_connections = 250;
}

sub vcl_recv {
    cookie.parse(req.http.Cookie);

    if (cookie.isset("segment")) {
        set req.http.X-Segment = cookie.get("segment");
        if (req.http.X-Segment !~ "^(retail|trade|staff)$") {
            set req.http.X-Segment = "retail";
        }
    } else {
        set req.http.X-Segment = "retail";
    }

    cookie.keep("session,segment");
    set req.http.Cookie = cookie.get_string();
    if (req.http.Cookie == "") {
        unset req.http.Cookie;
    }

    if (req.http.X-Segment == "staff") {
        return (pass);
    }
    if (!cookie.isset("session")) {
        unset req.http.Cookie;
    }
}

sub vcl_hash {
    hash_data(req.http.X-Segment);
}
