# decision: inline-c the country comes from a shared library; a module for GeoIP or a list of addresses has to take its place
vcl 4.1;

# The country of the visitor, until a module gives it.
acl country_at {
    "198.51.100.0"/24;
}

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    unset req.http.X-Country;
    if (client.ip ~ country_at) {
        set req.http.X-Country = "AT";
    }
    if (req.method == "POST") {
        return (pass);
    }
}

sub vcl_hash {
    if (req.http.X-Country) {
        hash_data(req.http.X-Country);
    }
}
