vcl 4.1;

import std;

backend origin { .host = "203.0.113.200"; .port = "80"; }

sub vcl_recv {
    set req.http.Host = req.http.Host.lower();
    set req.http.X-Scheme = std.toupper(req.http.X-Scheme);

    # Dots in the path.
    if (req.url ~ "/\.(/|$)") {
        set req.url = regsuball(req.url, "/\./", "/");
        set req.url = regsub(req.url, "/\.$", "/");
    }
    if (req.url ~ "/\.\.(/|$)") {
        return (synth(400, "Bad path"));
    }
    # Empty queries and the order of parameters.
    set req.url = regsub(req.url, "\?&*$", "");
    if (req.url ~ "\?.*&") {
        set req.url = std.querysort(req.url);
    }
    # Escapes in capitals.
    if (req.url ~ "%[0-9A-F]?[a-f]") {
        set req.http.X-Escaped = req.url.upper();
    }
    unset req.http.Cookie;
    unset req.http.Accept-Language;
    unset req.http.User-Agent;
}
