vcl 4.1;

import std;

backend default { .host = "127.0.0.1"; .port = "8080"; }

acl abusers +table {
    "192.0.2.66";
    "198.51.100.0"/26;
    "203.0.113.5";
    "2001:db8:bad::"/48;
}

sub vcl_recv {
    if (client.ip ~ abusers) {
        return (fail("abuser"));
    }
    if (!req.http.User-Agent || req.http.User-Agent == "") {
        return (synth(400, "User-Agent missing"));
    }
    if (std.fnmatch("*[Ss]crapy*", req.http.User-Agent, pathname = false) ||
        req.http.User-Agent ~ "(?i)(masscan|nikto|sqlmap|zgrab)") {
        return (synth(403, "No"));
    }
    if (std.strstr(req.url, "../") || req.url ~ "(?i)(union.+select|%00|<script)") {
        return (synth(400, "No"));
    }
    if (req.http.Host !~ "^(www\.)?example\.com(:\d+)?$") {
        return (synth(404, "Unknown host"));
    }
    if (req.url == "/robots.txt") {
        return (synth(200, "robots"));
    }
}

sub vcl_synth {
    if (resp.reason == "robots") {
        set resp.http.Content-Type = "text/plain";
        set resp.body = """User-agent: *
Disallow: /search
Crawl-delay: 10
""";
        return (deliver);
    }
}
