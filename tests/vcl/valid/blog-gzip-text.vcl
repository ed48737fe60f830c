vcl 4.0;
# gzip for text that the server sends as it is

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_backend_response
{
    if (beresp.http.content-type ~ "text/(css|plain|html|xml)" ||
        beresp.http.content-type ~ "application/(javascript|json|rss\+xml)" ||
        beresp.http.content-type == "image/svg+xml")
    {
        set beresp.do_gzip = true;
    }
    elsif (beresp.http.content-encoding ~ "gzip" && bereq.url ~ "\.(zip|gz)$")
    {
        set beresp.do_gunzip = false;
    }
}
