vcl 4.1;

import std;
import str;
import xkey;

# The CMS tags each response with the nodes in it, in X-Cache-Tags:
# "node-12,node-77,type-news". Editing a node bans its tag.

backend cms {
    .host = "127.0.0.1";
    .port = "8082";
    .first_byte_timeout = 60s;
    .probe = {
        .request =
            "HEAD /robots.txt HTTP/1.1"
            "Host: www.example.org"
            "Connection: close";
        .interval = 10s;
        .timeout = 3s;
    }
}

acl invalidators {
    "127.0.0.1";
    "::1";
    "10.0.3.0"/30;
}

sub ban_of_tags {
    if (!(client.ip ~ invalidators)) {
        return (synth(405, "Method not allowed"));
    }
    if (req.http.X-Cache-Tags) {
        if (req.http.X-Cache-Tags !~ "^[a-z0-9-]+(,[a-z0-9-]+)*$") {
            return (synth(400, "Tags expected"));
        }
        set req.http.X-First-Tag = str.split(req.http.X-Cache-Tags, 1, ",");
        set req.http.X-Last-Tag = str.split(req.http.X-Cache-Tags, -1, ",");
        std.log("tags from " + req.http.X-First-Tag + " to " + req.http.X-Last-Tag);
        if (!std.ban("obj.http.X-Host == " + req.http.X-Host +
                     " && obj.http.X-Cache-Tags ~ (^|,)(" + regsuball(req.http.X-Cache-Tags, ",", "|") + ")(,|$)")) {
            return (synth(400, std.ban_error()));
        }
    } elsif (req.http.X-Url) {
        if (!std.ban("obj.http.X-Host == " + req.http.X-Host
                   + " && obj.http.X-Url ~ " + req.http.X-Url)) {
            return (synth(400, std.ban_error()));
        }
    } else {
        return (synth(400, "X-Cache-Tags or X-Url expected"));
    }
    return (synth(200, "Banned"));
}

sub vcl_recv {
    if (req.method == "BAN") {
        call ban_of_tags;
    }

    # The back end of the editors, their previews, and what they log in with.
    if (req.url ~ "^/(editor|login|logout|media-browser)(/|$|\?)" ||
        req.url ~ "@user-[a-z0-9.-]+") {
        return (pass);
    }
    if (req.http.Cookie ~ "(^|; )cms_session=") {
        return (pass);
    }
    unset req.http.Cookie;

    # Dimensions of the content: language and market stand in the path.
    if (req.url ~ "^/(en|de|da)(_(uk|us|at|ch))?/") {
        set req.http.X-Dimension = regsub(req.url, "^/([a-z_]+)/.*$", "\1");
    } else {
        set req.http.X-Dimension = "en";
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.host;

    if (beresp.http.X-Cache-Lifetime ~ "^[0-9]+$") {
        set beresp.ttl = std.duration(beresp.http.X-Cache-Lifetime + "s", 1h);
    } elsif (!beresp.http.X-Cache-Tags) {
        # Without tags nothing can be banned: keep it for a short time.
        set beresp.ttl = 1m;
    }
    if (beresp.http.X-Cache-Tags) {
        set beresp.http.xkey = regsuball(beresp.http.X-Cache-Tags, ",", " ");
    }
    if (beresp.status == 404) {
        set beresp.ttl = 30s;
        set beresp.grace = 0s;
    } else {
        set beresp.grace = 1d;
    }
}

sub vcl_deliver {
    if (client.ip ~ invalidators && req.http.X-Show-Tags) {
        set resp.http.X-Age = obj.age;
        set resp.http.X-Reversed = str.reverse(resp.http.X-Cache-Tags);
    } else {
        unset resp.http.X-Url;
        unset resp.http.X-Host;
        unset resp.http.X-Cache-Tags;
        unset resp.http.xkey;
    }
    set resp.http.Content-Language = regsub(req.http.X-Dimension, "_", "-");
}
