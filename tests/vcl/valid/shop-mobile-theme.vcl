vcl 4.0;

backend default { .host = "127.0.0.1"; .port = "8080"; }

include "./parts/device-class.vcl";

sub vcl_recv {
    call device_class;
}

sub vcl_hash {
    hash_data(req.http.X-Device);
}

sub vcl_backend_response {
    set beresp.http.X-Device = bereq.http.X-Device;
}

sub vcl_deliver {
    if (resp.http.Vary) {
        set resp.http.Vary = resp.http.Vary + ", User-Agent";
    } else {
        set resp.http.Vary = "User-Agent";
    }
    unset resp.http.X-Device;
}
