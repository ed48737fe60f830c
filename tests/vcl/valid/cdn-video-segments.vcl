vcl 4.1;

import std;
import str;
import directors;

# Live and stored video: playlists, segments, keys.

probe packager {
    .url = "/state";
    .interval = 1s;
    .timeout = 500ms;
    .window = 5;
    .threshold = 3;
    .initial = 3;
}

backend live1 { .host = "192.0.2.171"; .port = "80"; .probe = packager; .between_bytes_timeout = 8s; }
backend live2 { .host = "192.0.2.172"; .port = "80"; .probe = packager; .between_bytes_timeout = 8s; }
backend stored { .host = "192.0.2.181"; .port = "80"; .max_connections = 64; }
backend keys { .host = "192.0.2.182"; .port = "8443"; .max_connections = 16; }

sub vcl_init {
    new live = directors.fallback(sticky=1);
    live.add_backend(live1);
    live.add_backend(live2);
}

sub kind_of_request {
    if (req.url ~ "\.(m3u8|mpd)(\?|$)") {
        set req.http.X-Kind = "playlist";
    } elsif (req.url ~ "\.(ts|m4s|mp4|aac|vtt)(\?|$)") {
        set req.http.X-Kind = "segment";
    } elsif (req.url ~ "\.key(\?|$)") {
        set req.http.X-Kind = "key";
    } else {
        return (synth(404));
    }
}

sub source_of_channel {
    # /live/CHANNEL/… or /vod/ASSET/…
    set req.http.X-Source = str.split(req.url, 1, "/");
    set req.http.X-Channel = str.split(req.url, 2, "/");
    if (req.http.X-Source == "live") {
        set req.backend_hint = live.backend();
    } elsif (req.http.X-Source == "vod") {
        set req.backend_hint = stored;
    } else {
        return (synth(404, "Neither live nor stored"));
    }
    if (req.http.X-Kind == "key") {
        set req.backend_hint = keys;
    }
}

sub vcl_recv {
    unset req.http.Cookie;
    unset req.http.Accept-Language;
    call kind_of_request;
    call source_of_channel;

    if (req.http.X-Kind == "segment") {
        set req.url = regsub(req.url, "\?.*$", "");
        # Two numbers of one segment.
        set req.url = regsub(req.url, "/seg-0+(\d+)\.", "/seg-\1.");
    } elsif (req.http.X-Kind == "playlist") {
        # Only the position in the playlist is of interest to the packager.
        if (req.url ~ "[?&]_HLS_msn=\d+") {
            set req.url = regsub(req.url, "\?.*?(_HLS_msn=\d+).*$", "?\1");
            set req.hash_ignore_busy = false;
        } else {
            set req.url = regsub(req.url, "\?.*$", "");
        }
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (synth(405));
    }
    return (hash);
}

sub vcl_hash {
    hash_data(req.url);
    return (lookup);
}

sub vcl_backend_fetch {
    if (bereq.http.X-Kind == "playlist") {
        set bereq.first_byte_timeout = 12s;
    } elsif (bereq.http.X-Kind == "segment") {
        set bereq.first_byte_timeout = 4s;
    }
    if (bereq.retries > 0 && bereq.http.X-Source == "live") {
        set bereq.backend = live2;
    }
}

sub vcl_backend_response {
    if (bereq.http.X-Kind == "playlist") {
        set beresp.ttl = 1s;
        set beresp.grace = 1s;
        set beresp.do_gzip = true;
        if (bereq.http.X-Source == "vod") {
            set beresp.ttl *= 3600;
        }
    } elsif (bereq.http.X-Kind == "key") {
        set beresp.ttl = 10m;
        set beresp.grace = 0s;
    } else {
        set beresp.ttl = 1d;
        set beresp.do_stream = true;
        unset beresp.http.Set-Cookie;
        unset beresp.http.Vary;
    }
    if (beresp.status == 404 && bereq.http.X-Kind == "segment") {
        # A segment that is not there yet comes within a second.
        set beresp.ttl = 200ms;
        set beresp.grace = 0s;
    } elsif (beresp.status >= 500) {
        if (bereq.retries == 0) {
            return (retry);
        }
        set beresp.ttl = 1s;
        set beresp.uncacheable = true;
    }
    # Bits per second, rounded; written into the log of the player.
    if (beresp.http.X-Duration && beresp.http.Content-Length) {
        set beresp.http.X-Rate = std.integer(
            real = std.round(std.real(beresp.http.Content-Length, 0.0) * 8 / std.real(beresp.http.X-Duration, 1.0)),
            fallback = 0);
    }
}

sub vcl_deliver {
    set resp.http.Access-Control-Allow-Origin = "*";
    set resp.http.Access-Control-Expose-Headers = "Age, X-Rate";
    if (req.http.X-Kind == "key") {
        set resp.http.Cache-Control = "no-store";
    } elsif (req.http.X-Kind == "playlist" && req.http.X-Source == "live") {
        set resp.http.Cache-Control = "max-age=1";
    }
    if (obj.hits == 0) {
        std.log("first:" + req.http.X-Channel);
    }
}
