vcl 4.1;

import directors;

backend www1 {
    .host = "192.0.2.31";
    .port = "8080";
}
backend www2 {
    .host = "192.0.2.32";
    .port = "8080";
}
/* the third one is for the nightly jobs
backend www3 {
    .host = "192.0.2.33";
}
*/

sub vcl_init {
    new www = directors.round_robin();
    www.add_backend(www1);
    www.add_backend(www2);
}

sub vcl_recv {
    set req.backend_hint = www.backend();
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    return (hash);
}
