# mend: synthetic(
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_backend_error {
    set beresp.http.Content-Type = "text/plain; charset=utf-8";
    set beresp.http.Retry-After = "30";
    synthetic {"We are back in a moment."}; # <- LINE
    return (deliver);
}
