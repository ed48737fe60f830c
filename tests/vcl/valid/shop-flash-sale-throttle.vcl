vcl 4.1;

import std;
import vsthrottle;

backend default { .host = "203.0.113.80"; .port = "8080"; .max_connections = 50; }

sub vcl_recv {
    if (req.url ~ "^/sale/") {
        if (vsthrottle.is_denied("sale:" + client.identity, 20, 10s, 30s)) {
            return (synth(429, "Too Many Requests"));
        }
        if (req.method == "POST" && vsthrottle.is_denied("buy:" + client.identity, 2, 1m)) {
            return (synth(429, "Too Many Orders"));
        }
    }
}

sub vcl_synth {
    if (resp.status == 429) {
        set resp.http.Retry-After = vsthrottle.blocked("sale:" + client.identity, 20, 10s, 30s);
        set resp.http.Content-Type = "text/plain";
        set resp.body = "Please wait.";
        return (deliver);
    }
}

sub vcl_deliver {
    set resp.http.X-RateLimit-Remaining = vsthrottle.remaining("sale:" + client.identity, 20, 10s, 30s);
}
