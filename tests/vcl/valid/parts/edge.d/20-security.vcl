include "./30-more/strict.vcl";

sub vcl_deliver {
    set resp.http.X-Content-Type-Options = "nosniff";
    call strict_transport;
}
