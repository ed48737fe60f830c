vcl 4.0;

backend default { .host = "192.0.2.208"; .port = "8080"; }

sub vcl_backend_response {
    if (beresp.http.ETag || beresp.http.Last-Modified) {
        set beresp.keep = 2h;
    }
    if (beresp.was_304) {
        set beresp.http.X-Revalidated = beresp.time;
    }
}

sub vcl_deliver {
    set resp.http.Age = obj.age;
    if (obj.hits == 0 && resp.http.ETag ~ "^W/") {
        unset resp.http.ETag;
    }
}
