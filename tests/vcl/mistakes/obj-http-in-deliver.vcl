# mend: resp.http.X-Backend-Time
vcl 4.1;

backend app {
    .host = "127.0.0.1";
    .port = "3000";
}

sub vcl_deliver {
    # Internal measurements are for our own network.
    if (obj.http.X-Backend-Time) { # <- LINE
        unset resp.http.X-Powered-By;
    }
    set resp.http.X-Age = obj.age;
}
