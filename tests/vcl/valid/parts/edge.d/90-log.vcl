import std;

sub vcl_deliver {
    std.log("status " + resp.status);
}
