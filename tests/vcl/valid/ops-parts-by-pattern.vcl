vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

// Every file of the folder, in order of names.
include +glob "./parts/edge.d/*.vcl";

sub vcl_deliver {
    set resp.http.X-Last = "main";
}
