vcl 4.1;

import std;
import directors;

# Directors of directors, and directors that change while they run.

probe up {
    .url = "/up";
    .interval = 3s;
    .timeout = 1s;
    .window = 4;
    .threshold = 3;
}

backend primary   { .host = "192.0.2.106"; .port = "80"; .probe = up; }
backend secondary { .host = "192.0.2.107"; .port = "80"; .probe = up; }
backend tertiary  { .host = "192.0.2.109"; .port = "80"; .probe = up; }
backend sorry     { .host = "192.0.2.108"; .port = "80"; }

acl operators {
    "127.0.0.1";
    "192.0.2.8"/29;
}

sub vcl_init {
    new pair = directors.fallback(sticky = true);
    pair.add_backend(primary);
    pair.add_backend(secondary);

    new all = directors.fallback();
    all.add_backend(pair.backend());
    all.add_backend(sorry);

    new turns = directors.round_robin();
    turns.add_backend(primary);
    turns.add_backend(secondary);
    turns.add_backend(tertiary);

    new dice = directors.random();
    dice.add_backend(primary, 3);
    dice.add_backend(tertiary, 1);

    new places = directors.shard();
    if (places.add_backend(primary) && places.add_backend(secondary)) {
        places.set_warmup(0.25);
        places.reconfigure();
    } else {
        return (fail("no places"));
    }

    new by_cookie = directors.hash();
    by_cookie.add_backend(turns.backend());
    by_cookie.add_backend(dice.backend(), 0.5);
}

sub take_out_or_in {
    if (req.method != "OUT" && req.method != "IN") {
        return;
    }
    if (client.ip !~ operators) {
        return (synth(403));
    }
    if (req.method == "OUT") {
        if (req.url == "/primary") {
            pair.remove_backend(primary);
            turns.remove_backend(primary);
            dice.remove_backend(primary);
            places.remove_backend(backend=primary);
        } elsif (req.url == "/tertiary") {
            turns.remove_backend(tertiary);
            dice.remove_backend(tertiary);
        } elsif (req.url == "/turns") {
            by_cookie.remove_backend(turns.backend());
        } elsif (req.url == "/places") {
            places.clear();
            places.add_backend(sorry, ident="sorry");
            places.remove_backend(ident="nobody");
        } else {
            return (synth(404));
        }
    } else {
        if (req.url == "/primary") {
            pair.add_backend(primary);
            turns.add_backend(primary);
            dice.add_backend(primary, 3.0);
            places.add_backend(primary);
            places.reconfigure();
        } else {
            return (synth(404));
        }
    }
    return (synth(200));
}

sub vcl_recv {
    call take_out_or_in;
    if (req.url ~ "^/a/") {
        set req.backend_hint = all.backend();
    } elsif (req.url ~ "^/b/") {
        set req.backend_hint = by_cookie.backend(req.http.Cookie + req.http.Host);
    } elsif (req.url ~ "^/c/") {
        set req.backend_hint = places.backend(by=KEY, key=1234567);
    } elsif (req.url ~ "^/d/") {
        set req.backend_hint = places.backend(BLOB, key_blob=:AAAAKg==:, alt=req.restarts, healthy=IGNORE);
    } elsif (std.healthy(dice.backend())) {
        set req.backend_hint = dice.backend();
    } else {
        set req.backend_hint = sorry;
    }
}
