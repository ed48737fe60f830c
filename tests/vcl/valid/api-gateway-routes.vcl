vcl 4.1;

import std;
import header;
import var;
import vsthrottle;

# ---------------------------------------------------------------- backends

probe ready {
    .url = "/ready";
    .interval = 3s;
    .timeout = 1s;
    .window = 6;
    .threshold = 4;
}

backend users   { .host = "198.51.100.11"; .port = "8080"; .probe = ready; .max_connections = 200; }
backend orders  { .host = "198.51.100.12"; .port = "8080"; .probe = ready; .max_connections = 200; }
backend search  { .host = "198.51.100.13"; .port = "9200"; .first_byte_timeout = 5s; }
backend reports { .host = "198.51.100.14"; .port = "8080"; .first_byte_timeout = 5m; .between_bytes_timeout = 1m; }
backend static  { .path = "/run/static/http.sock"; .host_header = "static.example.org"; }

acl partners +log {
    "203.0.113.0"/24;
    ! "203.0.113.13";
    "2001:db8:cafe::"/48;
}

# ------------------------------------------------------------------ routes

sub route {
    if (req.url ~ "^/v[12]/users(/|\?|$)") {
        set req.backend_hint = users;
        var.set("route", "users");
        var.set_duration("ttl", 30s);
    } elsif (req.url ~ "^/v[12]/orders(/|\?|$)") {
        set req.backend_hint = orders;
        var.set("route", "orders");
        var.set_duration("ttl", 0s);
    } elsif (req.url ~ "^/v2/search(/|\?|$)") {
        set req.backend_hint = search;
        set req.url = regsub(req.url, "^/v2/search", "/catalogue/_search");
        var.set("route", "search");
        var.set_duration("ttl", 5m);
    } elsif (req.url ~ "^/v2/reports(/|\?|$)") {
        if (client.ip !~ partners) {
            return (synth(403, "Partners only"));
        }
        set req.backend_hint = reports;
        var.set("route", "reports");
        var.set_duration("ttl", 1h);
    } elsif (req.url ~ "^/(docs|schemas)/") {
        set req.backend_hint = static;
        var.set("route", "static");
        var.set_duration("ttl", 1d);
    } else {
        return (synth(404, "No such route"));
    }
    set req.http.X-Route = var.get("route");
    set req.http.X-Ttl = "" + var.get_duration("ttl");
}

sub limit {
    var.set_int("limit", 60);
    if (client.ip ~ partners) {
        var.set_int("limit", 600);
    }
    if (req.http.X-Route == "search") {
        var.set_int("limit", var.get_int("limit") / 2);
    }
    if (vsthrottle.is_denied(req.http.X-Route + ":" + client.identity, var.get_int("limit"), 1m)) {
        return (synth(429, "Too Many Requests"));
    }
}

# ------------------------------------------------------------------- client

sub vcl_recv {
    unset req.http.X-Route;
    unset req.http.X-Ttl;
    if (req.method == "TRACE" || req.method == "CONNECT") {
        return (synth(405, "Method Not Allowed"));
    }
    if (req.http.Content-Length && std.integer(req.http.Content-Length, 0) > 1048576) {
        return (synth(413, "Content Too Large"));
    }
    call route;
    call limit;
    if (req.url ~ "\?") {
        set req.url = std.querysort(req.url);
    }
    std.collect(req.http.Accept, sep=", ");
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.http.X-Route != "static" && req.http.Authorization) {
        return (pass);
    }
    return (hash);
}

sub vcl_deliver {
    set resp.http.X-Route = req.http.X-Route;
    header.append(resp.http.Server-Timing, "cache;desc=" + obj.hits);
    header.append(resp.http.Server-Timing, "total;dur=" + (now - req.time));
    unset resp.http.X-Powered-By;
    unset resp.http.Via;
}

sub vcl_synth {
    set resp.http.Content-Type = "application/problem+json";
    if (resp.status == 405) {
        set resp.http.Allow = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    }
    set resp.body = """{
  "status": """ + resp.status + """,
  "title": """ + {"""} + resp.reason + {"","} + """
  "instance": "/errors/""" + req.xid + """"
}
""";
    return (deliver);
}

# ------------------------------------------------------------------ backend

sub vcl_backend_fetch {
    if (bereq.backend == search) {
        set bereq.http.Accept = "application/json";
    }
    if (bereq.http.X-Route == "reports" && bereq.retries > 0) {
        return (abandon);
    }
}

sub vcl_backend_response {
    if (!beresp.http.Cache-Control && beresp.status == 200) {
        set beresp.ttl = std.duration(bereq.http.X-Ttl + "s", 0s);
    }
    if (beresp.ttl <= 0s) {
        set beresp.uncacheable = true;
        set beresp.ttl = 1m;
        return (deliver);
    }
    header.remove(beresp.http.Set-Cookie, "^lb=");
    set beresp.grace = beresp.ttl * 3;
}

sub vcl_backend_error {
    if (bereq.retries == 0 && bereq.method == "GET") {
        return (retry);
    }
    set beresp.http.Content-Type = "application/problem+json";
    set beresp.http.Retry-After = "10";
    set beresp.body = {"{"status": "} + beresp.status + """, "title": "The service does not answer"}
""";
    return (deliver);
}
