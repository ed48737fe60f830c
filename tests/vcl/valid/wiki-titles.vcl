vcl 4.1;

import std;
import str;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    # "Wiki/main page" and "Wiki/Main_page" are one page.
    if (str.startswith(req.url, "/wiki/")) {
        set req.http.X-Title = str.take(req.url, str.count(req.url), 6);
        set req.http.X-Title = regsuball(req.http.X-Title, "(%20|\+)", "_");
        set req.http.X-First = str.take(req.http.X-Title, 1);
        if (req.http.X-First ~ "[a-z]") {
            set req.url = "/wiki/" + std.toupper(req.http.X-First)
                + str.take(req.http.X-Title, str.count(req.http.X-Title) - 1, 1);
        }
        unset req.http.X-Title;
        unset req.http.X-First;
    } elsif (str.contains(req.url, "title=Special:") && !str.endswith(req.url, "&printable=yes")) {
        return (pass);
    }
}
