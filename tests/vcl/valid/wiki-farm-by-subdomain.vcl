vcl 4.1;

import std;
import directors;

probe api {
    .request =
        "GET /w/api.php?action=query&meta=siteinfo HTTP/1.1"
        "Host: meta.wiki.example.org"
        "User-Agent: probe"
        "Connection: close";
    .timeout = 3s;
    .interval = 6s;
    .window = 5;
    .threshold = 4;
    .initial = 4;
}

backend mw1 { .host = "2001:db8:50::1"; .port = "8080"; .probe = api; }
backend mw2 { .host = "2001:db8:50::2"; .port = "8080"; .probe = api; }
backend mw3 { .host = "2001:db8:50::3"; .port = "8080"; .probe = api; }
backend jobs { .host = "2001:db8:50::9"; .port = "8080"; }

acl purge -log {
    "2001:db8:50::"/64;
    "127.0.0.1";
    "::1";
}

sub vcl_init {
    new mw = directors.round_robin();
    mw.add_backend(mw1);
    mw.add_backend(mw2);
    mw.add_backend(mw3);
}

# URLs of one page under many spellings.
sub normalise_path {
    # Characters that need no escape in a title.
    set req.url = regsuball(req.url, "%3[Aa]", ":");
    set req.url = regsuball(req.url, "%2[Ff]", "/");
    set req.url = regsuball(req.url, "%40", "@");
    set req.url = regsuball(req.url, "%21", "!");
    set req.url = regsuball(req.url, "%24", "$");
    set req.url = regsuball(req.url, "%2[Aa]", "*");
    set req.url = regsuball(req.url, "%28", "(");
    set req.url = regsuball(req.url, "%29", ")");
    set req.url = regsuball(req.url, "%2[Cc]", ",");
    set req.url = regsuball(req.url, "%3[Bb]", ";");
}

sub mobile_redirect {
    if (req.http.Host ~ "^m\." || req.http.Cookie ~ "(^|; )stay_desktop=") {
        return;
    }
    if (req.method == "GET" && req.http.User-Agent ~ "(?i)(iphone|android.+mobile)") {
        return (synth(752, "https://m." + req.http.Host + req.url));
    }
}

sub choose_backend {
    if (req.url ~ "^/w/rpc/RunJobs" || req.http.X-Wiki-Job) {
        set req.backend_hint = jobs;
        return (pass);
    }
    set req.backend_hint = mw.backend();
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purge) {
            return (synth(405, "Denied"));
        }
        return (purge);
    }

    set req.http.Host = std.tolower(req.http.Host);
    if (req.http.Host !~ "^([a-z0-9-]+\.)?(m\.)?wiki\.example\.org$") {
        return (synth(753, "https://meta.wiki.example.org/wiki/Unknown"));
    }

    call choose_backend;

    if (req.url ~ "^/wiki/") {
        call normalise_path;
        call mobile_redirect;
    }

    if (req.http.Cookie ~ "([sS]ession|Token)=") {
        return (pass);
    }
    if (req.http.Cookie ~ "(^|; )UserVariant=") {
        set req.http.X-Variant = regsub(req.http.Cookie, "^(?:.*; )?UserVariant=([a-z-]+).*$", "\1");
    } else {
        unset req.http.X-Variant;
    }
    unset req.http.Cookie;
    if (req.http.Authorization ~ "^OAuth ") {
        return (pass);
    }
    return (hash);
}

sub vcl_hash {
    if (req.http.X-Variant) {
        hash_data(req.http.X-Variant);
    }
}

sub vcl_hit {
    if (obj.ttl <= 0s && obj.ttl + obj.grace > 0s) {
        std.log("stale:" + obj.age);
    }
}

sub vcl_backend_fetch {
    if (bereq.url ~ "^/w/load\.php") {
        set bereq.first_byte_timeout = 15s;
        set bereq.between_bytes_timeout = 4s;
    }
}

sub vcl_backend_response {
    if (beresp.ttl > 1d) {
        set beresp.ttl = 1d;
    }
    set beresp.grace = 5m;
    set beresp.keep = 3d;
    if (bereq.uncacheable || beresp.http.Set-Cookie) {
        set beresp.uncacheable = true;
        set beresp.ttl = 10m;
    } elsif (beresp.status >= 500) {
        if (bereq.is_bgfetch) {
            return (abandon);
        }
        set beresp.ttl = 1s;
    } elsif (beresp.status == 404 && beresp.ttl > 10m) {
        set beresp.ttl = 10m;
    }
}

sub vcl_synth {
    if (resp.status == 752 || resp.status == 753) {
        set resp.http.Location = resp.reason;
        set resp.http.Cache-Control = "s-maxage=1200, max-age=0";
        if (resp.status == 752) {
            set resp.http.Vary = "User-Agent, Cookie";
        }
        set resp.status = 302;
        return (deliver);
    }
}
