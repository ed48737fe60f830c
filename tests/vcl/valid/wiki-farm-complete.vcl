vcl 4.1;

# A farm of wikis: many hosts, many groups of servers, one file.
#
#  1  servers and probes
#  2  networks
#  3  directors
#  4  hosts
#  5  redirects of old addresses
#  6  requests
#  7  responses
#  8  pages of errors

import std;
import directors;
import cookie;
import blob;
import str;
import header;
import vsthrottle;

# ===========================================================================
# 1  Servers and probes
# ===========================================================================

probe wiki {
    .request =
        "GET /w/health HTTP/1.1"
        "Host: health.wiki.example.net"
        "User-Agent: farm-probe"
        "Connection: close";
    .interval = 4s;
    .timeout = 2s;
    .window = 10;
    .threshold = 7;
    .initial = 8;
}

probe files {
    .url = "/robots.txt";
    .interval = 10s;
    .timeout = 1s;
}

# Group main.
backend main1 {
    .host = "10.60.1.11";
    .port = "80";
    .probe = wiki;
    .max_connections = 150;
    .first_byte_timeout = 35s;
}
backend main2 {
    .host = "10.60.1.12";
    .port = "80";
    .probe = wiki;
    .max_connections = 150;
    .first_byte_timeout = 35s;
}
backend main3 {
    .host = "10.60.1.13";
    .port = "80";
    .probe = wiki;
    .max_connections = 150;
    .first_byte_timeout = 35s;
}
backend main4 {
    .host = "10.60.1.14";
    .port = "80";
    .probe = wiki;
    .max_connections = 150;
    .first_byte_timeout = 35s;
}
backend main5 {
    .host = "10.60.1.15";
    .port = "80";
    .probe = wiki;
    .max_connections = 150;
    .first_byte_timeout = 35s;
}
backend main6 {
    .host = "10.60.1.16";
    .port = "80";
    .probe = wiki;
    .max_connections = 150;
    .first_byte_timeout = 35s;
}

# Group small.
backend small1 {
    .host = "10.60.2.11";
    .port = "80";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}
backend small2 {
    .host = "10.60.2.12";
    .port = "80";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}
backend small3 {
    .host = "10.60.2.13";
    .port = "80";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}
backend small4 {
    .host = "10.60.2.14";
    .port = "80";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}

# Group closed.
backend closed1 {
    .host = "10.60.3.11";
    .port = "8080";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}
backend closed2 {
    .host = "10.60.3.12";
    .port = "8080";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}

# Group test.
backend test1 {
    .host = "10.60.4.11";
    .port = "8080";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}
backend test2 {
    .host = "10.60.4.12";
    .port = "8080";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}

# Group parser.
backend parser1 {
    .host = "10.60.5.11";
    .port = "8000";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}
backend parser2 {
    .host = "10.60.5.12";
    .port = "8000";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}
backend parser3 {
    .host = "10.60.5.13";
    .port = "8000";
    .probe = wiki;
    .max_connections = 60;
    .first_byte_timeout = 65s;
}

backend file1 { .host = "10.60.9.1"; .port = "80"; .probe = files; }
backend file2 { .host = "10.60.9.2"; .port = "80"; .probe = files; }
backend file3 { .host = "10.60.9.3"; .port = "80"; .probe = files; }
backend maps { .host = "10.60.8.1"; .port = "6533"; .first_byte_timeout = 10s; .between_bytes_timeout = 2s; }
backend mail { .host = "10.60.8.2"; .port = "8080"; .probe = { .url = "/ping"; .timeout = 3s; } }
backend dumps { .path = "/run/dumps/http.sock"; }

# ===========================================================================
# 2  Networks
# ===========================================================================

acl farm {
    "10.60.0.0"/16;
    "2001:db8:60::"/48;
    "127.0.0.1";
    "::1";
}

acl tls_terminators {
    "10.60.100.0"/28;
    ! "10.60.100.15";
}

acl operators +log {
    "192.0.2.8"/29;
    "2001:db8:60:ff::"/64;
}

# Networks that may not write without an account; the list of the council.
acl closed_networks +table -pedantic {
    "203.0.113.144"/28;       # open proxy
    "100.64.168.0"/26;        # hosting
    "100.80.22.0"/25;         # open proxy
    "198.18.115.0"/24;
    "203.0.113.0"/28;         # hosting
    "198.18.239.128"/25;      # vandalism
    "198.18.13.192"/28;       # hosting
    "100.80.223.128"/26;      # hosting
    "198.18.185.128"/25;      # hosting
    "198.19.206.0"/25;        # hosting
    "100.80.241.0"/25;        # open proxy
    "100.80.119.0"/24;
    "198.18.231.128"/26;
    "198.18.31.0"/24;
    "198.19.44.0"/25;         # hosting
    "100.80.248.47";
    "203.0.113.0"/26;         # open proxy
    "100.64.127.128"/25;      # vandalism
    "198.18.235.234";
    "100.80.222.0"/24;
    "100.64.48.192"/26;       # vandalism
    "198.19.74.0"/25;
    "198.18.26.208"/28;       # hosting
    "198.19.100.208"/28;
    "100.64.36.43";           # open proxy
    "203.0.113.0"/25;         # hosting
    "100.80.101.0"/24;
    "198.19.136.128"/25;      # vandalism
    "100.80.113.128"/26;      # hosting
    "100.80.80.27";
    "198.18.55.128"/26;       # vandalism
    "100.64.4.112"/28;
    "203.0.113.192"/26;       # school, on its own wish
    "198.19.81.64"/26;
    "198.19.182.0"/25;
    "100.80.129.32"/28;
    "198.19.253.192"/26;      # school, on its own wish
    "198.18.126.128"/26;
    "100.80.108.64"/26;       # hosting
    "198.18.97.0"/26;         # hosting
    "203.0.113.44";
    "198.18.206.144"/28;
    "198.19.107.0"/24;        # school, on its own wish
    "198.19.89.183";
    "100.80.21.0"/24;         # vandalism
    "198.19.221.64"/26;
    "198.18.221.0"/24;
    "198.19.230.192"/26;      # school, on its own wish
    "100.80.133.32"/28;
    "198.19.7.139";
    "198.19.175.16"/28;
    "198.19.67.19";
    "198.19.180.128"/25;      # school, on its own wish
    "203.0.113.176"/28;
    "100.64.140.0"/26;        # hosting
    "100.64.109.128"/25;      # hosting
    "100.80.7.128"/25;        # hosting
    "100.64.120.64"/28;       # school, on its own wish
    "203.0.113.128"/26;
    "100.80.54.112"/28;
    "100.64.195.0"/25;        # open proxy
    "100.64.190.0"/24;
    "100.64.58.128"/25;       # hosting
    "100.80.144.0"/26;
    "198.19.162.96"/28;       # hosting
    "203.0.113.0"/24;
    "100.80.18.0"/26;         # vandalism
    "198.19.66.0"/24;
    "100.80.231.0"/28;        # hosting
    "198.18.229.165";         # vandalism
    "203.0.113.208"/28;
    "198.19.87.0"/24;         # hosting
    "100.80.11.0"/24;
    "198.19.166.144"/28;
    "198.18.4.208"/28;        # school, on its own wish
    "100.64.107.0"/24;        # hosting
    "100.64.148.60";          # open proxy
    "203.0.113.215";
    "100.80.212.32"/28;       # hosting
    "198.18.127.0"/24;
    "100.80.98.128"/25;       # school, on its own wish
    "100.80.242.0"/25;
    "100.80.232.0"/24;
    "100.80.41.128"/28;       # school, on its own wish
    "198.18.203.0"/28;        # vandalism
    "198.18.67.64"/26;        # hosting
    "100.64.20.0"/24;         # open proxy
    "198.19.8.0"/25;          # vandalism
    "198.19.198.176"/28;      # school, on its own wish
    "198.18.79.0"/26;         # vandalism
    "198.19.192.0"/24;
    "203.0.113.128"/25;
    "100.64.232.0"/26;
    "100.64.221.20";          # hosting
    "100.80.94.221";          # open proxy
    "198.18.246.64"/26;       # school, on its own wish
    "198.19.91.16"/28;
    "203.0.113.71";
    "198.18.58.128"/25;
    "198.19.131.0"/26;
    "100.80.145.192"/26;
    "100.80.57.180";          # school, on its own wish
    "198.18.28.0"/24;
    "198.18.238.128"/26;      # hosting
    "198.19.216.128"/26;      # vandalism
    "203.0.113.91";           # hosting
    "203.0.113.32"/28;        # school, on its own wish
    "198.19.53.64"/28;
    "100.64.185.208"/28;      # school, on its own wish
    "100.80.135.68";          # hosting
    "198.18.97.96"/28;
    "100.64.21.8";            # hosting
    "100.64.255.0"/25;        # hosting
    "198.18.190.96"/28;
    "198.19.91.0"/26;
    "203.0.113.48"/28;
    "100.80.242.160"/28;      # school, on its own wish
    "100.80.177.28";          # hosting
    "100.80.163.0"/24;
    "100.64.3.0"/26;          # hosting
    "100.80.27.144"/28;       # vandalism
    "198.19.192.226";
    "100.80.89.96"/28;        # vandalism
    "100.64.5.48"/28;         # hosting
    "100.64.27.176"/28;       # vandalism
    "100.80.9.219";
    "198.19.30.0"/24;         # hosting
    "100.64.124.128"/26;
    "198.18.146.170";         # hosting
    "203.0.113.39";
    "198.18.147.64"/28;       # hosting
    "100.80.75.128"/25;
    "198.18.189.0"/24;
    "198.19.42.240"/28;       # school, on its own wish
    "203.0.113.160"/28;       # hosting
    "100.80.139.128"/25;      # school, on its own wish
    "198.18.197.219";         # school, on its own wish
    "100.64.124.0"/25;
    "198.19.118.0"/24;        # open proxy
    "198.18.222.129";
    "198.19.41.128"/26;       # vandalism
    "198.18.121.0"/25;
    "198.18.69.0"/24;         # vandalism
    "100.80.186.192"/26;      # school, on its own wish
    "100.64.154.0"/25;
    "100.64.208.128"/25;
    "198.18.255.46";
    "198.18.71.0"/24;
    "198.18.177.158";         # hosting
    "198.19.116.166";         # hosting
    "203.0.113.118";          # hosting
    "198.19.246.224"/28;
    "198.18.75.80"/28;        # hosting
    "100.64.144.128"/25;      # hosting
    "100.64.176.208"/28;
    "100.80.232.128"/25;      # open proxy
    "100.80.70.64"/26;        # hosting
    "198.18.169.0"/24;        # hosting
    "198.19.90.128"/25;
    "198.19.205.192"/26;      # school, on its own wish
    "100.64.175.0"/24;        # vandalism
    "198.18.223.0"/24;
    "100.64.221.64"/26;       # hosting
    "198.19.22.0"/24;         # vandalism
    "203.0.113.240"/28;       # open proxy
    "100.80.235.0"/24;
    "100.80.152.64"/28;
    "198.19.8.96"/28;         # school, on its own wish
    "198.18.35.0"/25;
    "100.64.34.0"/24;         # open proxy
    "198.19.131.0"/25;        # open proxy
    "100.64.90.40";           # open proxy
    "100.64.89.64"/28;
    "100.80.109.128"/26;      # hosting
    "100.64.121.228";
    "100.80.241.128"/25;      # hosting
    "100.80.135.0"/24;        # school, on its own wish
    "100.64.88.128"/25;       # hosting
    "100.80.117.177";         # hosting
    "100.64.126.0"/24;        # open proxy
    "198.18.22.192"/26;       # hosting
    "198.18.199.0"/26;        # open proxy
    "100.80.154.64"/28;       # school, on its own wish
    "100.80.132.64"/28;       # open proxy
    "2001:db8:bad0::"/48;
    "2001:db8:bad1::"/48;
    "2001:db8:bad2::"/48;
    "2001:db8:bad3::"/48;
    "2001:db8:bad4::"/48;
    "2001:db8:bad5::"/48;
    "2001:db8:bad6::"/48;
    "2001:db8:bad7::"/48;
    "2001:db8:bad8::"/48;
    "2001:db8:bad9::"/48;
    "2001:db8:bada::"/48;
    "2001:db8:badb::"/48;
    "2001:db8:badc::"/48;
    "2001:db8:badd::"/48;
    "100.127.1.1"/16;         # host bits: entered by hand in 2019
}

# Readers of whole wikis that have asked first.
acl known_crawlers +table {
    "192.0.2.128"/31;
    "192.0.2.130"/31;
    "192.0.2.132"/31;
    "192.0.2.134"/31;
    "192.0.2.136"/31;
    "192.0.2.138"/31;
    "192.0.2.140"/31;
    "192.0.2.142"/31;
    "192.0.2.144"/31;
    "192.0.2.146"/31;
    "192.0.2.148"/31;
    "192.0.2.150"/31;
    "192.0.2.152"/31;
    "192.0.2.154"/31;
    "192.0.2.156"/31;
    "192.0.2.158"/31;
    "192.0.2.160"/31;
    "192.0.2.162"/31;
    "192.0.2.164"/31;
    "192.0.2.166"/31;
    "192.0.2.168"/31;
    "192.0.2.170"/31;
    "192.0.2.172"/31;
    "192.0.2.174"/31;
    ! "192.0.2.140";
}

# ===========================================================================
# 3  Directors
# ===========================================================================

sub vcl_init {
    new main = directors.hash();
    main.add_backend(main1, 1.0);
    main.add_backend(main2, 1.0);
    main.add_backend(main3, 1.0);
    main.add_backend(main4, 1.0);
    main.add_backend(main5, 1.0);
    main.add_backend(main6, 1.0);

    new small = directors.random();
    small.add_backend(small1, 5.0);
    small.add_backend(small2, 10.0);
    small.add_backend(small3, 10.0);
    small.add_backend(small4, 10.0);

    new closed = directors.fallback();
    closed.add_backend(closed1);
    closed.add_backend(closed2);

    new test = directors.round_robin();
    test.add_backend(test1);
    test.add_backend(test2);

    new parser = directors.shard();
    parser.add_backend(parser1, ident="parser1");
    parser.add_backend(parser2, ident="parser2");
    parser.add_backend(parser3, ident="parser3");
    parser.set_rampup(30s);
    parser.set_warmup(0.1);
    parser.reconfigure(replicas=67);

    new media = directors.shard();
    media.add_backend(file1);
    media.add_backend(file2);
    media.add_backend(file3);
    media.reconfigure();

    new empty_gif = blob.blob(BASE64, "R0lGODlhAQABAAAAACwAAAAAAQABAAA=");
}

sub vcl_fini {
    std.log("farm configuration goes");
    return (ok);
}

# ===========================================================================
# 4  Hosts
# ===========================================================================

# Sets X-Wiki and the servers; an unknown host ends here.
sub wiki_of_host {
    set req.http.Host = std.tolower(regsub(req.http.Host, ":[0-9]+$", ""));
    unset req.http.X-Wiki;
    unset req.http.X-Language;

    if (req.http.Host == "physics.wiki.example.net") {
        set req.http.X-Wiki = "physics";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "chess.wiki.example.net") {
        set req.http.X-Wiki = "chess";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "sailing.wiki.example.net") {
        set req.http.X-Wiki = "sailing";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "botany.wiki.example.net") {
        set req.http.X-Wiki = "botany";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "opera.wiki.example.net") {
        set req.http.X-Wiki = "opera";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "railways.wiki.example.net") {
        set req.http.X-Wiki = "railways";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "cooking.wiki.example.net") {
        set req.http.X-Wiki = "cooking";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "astronomy.wiki.example.net") {
        set req.http.X-Wiki = "astronomy";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "genealogy.wiki.example.net") {
        set req.http.X-Wiki = "genealogy";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "mushrooms.wiki.example.net") {
        set req.http.X-Wiki = "mushrooms";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "bridges.wiki.example.net") {
        set req.http.X-Wiki = "bridges";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "typography.wiki.example.net") {
        set req.http.X-Wiki = "typography";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "beekeeping.wiki.example.net") {
        set req.http.X-Wiki = "beekeeping";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "cartography.wiki.example.net") {
        set req.http.X-Wiki = "cartography";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "heraldry.wiki.example.net") {
        set req.http.X-Wiki = "heraldry";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "knitting.wiki.example.net") {
        set req.http.X-Wiki = "knitting";
        set req.backend_hint = small.backend();
    } elsif (req.http.Host == "board.wiki.example.net") {
        set req.http.X-Wiki = "board";
        set req.http.X-Closed = "1";
        set req.backend_hint = closed.backend();
    } elsif (req.http.Host == "council.wiki.example.net") {
        set req.http.X-Wiki = "council";
        set req.http.X-Closed = "1";
        set req.backend_hint = closed.backend();
    } elsif (req.http.Host == "arbitration.wiki.example.net") {
        set req.http.X-Wiki = "arbitration";
        set req.http.X-Closed = "1";
        set req.backend_hint = closed.backend();
    } elsif (req.http.Host == "accounts.wiki.example.net") {
        set req.http.X-Wiki = "accounts";
        set req.http.X-Closed = "1";
        set req.backend_hint = closed.backend();
    } elsif (req.http.Host == "security.wiki.example.net") {
        set req.http.X-Wiki = "security";
        set req.http.X-Closed = "1";
        set req.backend_hint = closed.backend();
    } elsif (req.http.Host ~ "^[a-z]{2,3}(-[a-z]{2,8})?\.wiki\.example\.net$") {
        # A wiki for each language.
        set req.http.X-Language = regsub(req.http.Host, "\..*$", "");
        set req.http.X-Wiki = "lang-" + req.http.X-Language;
        set req.backend_hint = main.backend(req.url);
    } elseif (req.http.Host ~ "^test[0-9]*\.wiki\.example\.net$") {
        set req.http.X-Wiki = "test";
        set req.backend_hint = test.backend();
    } elif (req.http.Host == "media.wiki.example.net") {
        set req.http.X-Wiki = "media";
        set req.backend_hint = media.backend(by=URL);
    } else if (req.http.Host == "maps.wiki.example.net") {
        set req.http.X-Wiki = "maps";
        set req.backend_hint = maps;
    } else if (req.http.Host == "lists.wiki.example.net") {
        set req.http.X-Wiki = "lists";
        set req.backend_hint = mail;
    } else if (req.http.Host == "dumps.wiki.example.net") {
        set req.http.X-Wiki = "dumps";
        set req.backend_hint = dumps;
    } else if (req.http.Host == "wiki.example.net" || req.http.Host == "www.wiki.example.net") {
        return (synth(861, "https://en.wiki.example.net" + req.url));
    } else {
        return (synth(404, "No wiki of this name"));
    }
}

# ===========================================================================
# 5  Redirects of old addresses
# ===========================================================================

# Wikis that have been renamed.
sub renamed_hosts {
    if (req.http.Host == "plants.wiki.example.net") {
        return (synth(861, "https://botany.wiki.example.net" + req.url));
    } elsif (req.http.Host == "trains.wiki.example.net") {
        return (synth(861, "https://railways.wiki.example.net" + req.url));
    } elsif (req.http.Host == "stars.wiki.example.net") {
        return (synth(861, "https://astronomy.wiki.example.net" + req.url));
    } elsif (req.http.Host == "boats.wiki.example.net") {
        return (synth(861, "https://sailing.wiki.example.net" + req.url));
    } elsif (req.http.Host == "bees.wiki.example.net") {
        return (synth(861, "https://beekeeping.wiki.example.net" + req.url));
    } elsif (req.http.Host == "fonts.wiki.example.net") {
        return (synth(861, "https://typography.wiki.example.net" + req.url));
    } elsif (req.http.Host == "kitchen.wiki.example.net") {
        return (synth(861, "https://cooking.wiki.example.net" + req.url));
    } elsif (req.http.Host == "fungi.wiki.example.net") {
        return (synth(861, "https://mushrooms.wiki.example.net" + req.url));
    } elsif (req.http.Host == "coats-of-arms.wiki.example.net") {
        return (synth(861, "https://heraldry.wiki.example.net" + req.url));
    } elsif (req.http.Host == "atlas.wiki.example.net") {
        return (synth(861, "https://cartography.wiki.example.net" + req.url));
    } elsif (req.http.Host == "ancestors.wiki.example.net") {
        return (synth(861, "https://genealogy.wiki.example.net" + req.url));
    } elsif (req.http.Host == "schach.wiki.example.net") {
        return (synth(861, "https://chess.wiki.example.net" + req.url));
    }
}

# Pages that other sites link to by addresses of 2006.
sub old_pages {
    if (req.url !~ "^/(page|show|index)\.(pl|cgi|php)") {
        return;
    }
    if (req.url ~ "[?&;]id=100(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Main_Page"));
    } elsif (req.url ~ "[?&;]id=107(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Contents"));
    } elsif (req.url ~ "[?&;]id=114(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:About"));
    } elsif (req.url ~ "[?&;]id=121(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Rules"));
    } elsif (req.url ~ "[?&;]id=128(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Village_pump"));
    } elsif (req.url ~ "[?&;]id=135(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Editing"));
    } elsif (req.url ~ "[?&;]id=142(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Images"));
    } elsif (req.url ~ "[?&;]id=149(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Tables"));
    } elsif (req.url ~ "[?&;]id=156(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Templates"));
    } elsif (req.url ~ "[?&;]id=163(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Links"));
    } elsif (req.url ~ "[?&;]id=170(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Sandbox"));
    } elsif (req.url ~ "[?&;]id=177(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Statistics"));
    } elsif (req.url ~ "[?&;]id=184(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:News"));
    } elsif (req.url ~ "[?&;]id=191(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Council"));
    } elsif (req.url ~ "[?&;]id=198(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Donations"));
    } elsif (req.url ~ "[?&;]id=205(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Press"));
    } elsif (req.url ~ "[?&;]id=212(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Accounts"));
    } elsif (req.url ~ "[?&;]id=219(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Languages"));
    } elsif (req.url ~ "[?&;]id=226(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Licence"));
    } elsif (req.url ~ "[?&;]id=233(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Privacy"));
    } elsif (req.url ~ "[?&;]id=240(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Mirrors"));
    } elsif (req.url ~ "[?&;]id=247(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Bots"));
    } elsif (req.url ~ "[?&;]id=254(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Protection"));
    } elsif (req.url ~ "[?&;]id=261(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Project:Deletion"));
    } elsif (req.url ~ "[?&;]id=268(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Search"));
    } elsif (req.url ~ "[?&;]id=275(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Talk_pages"));
    } elsif (req.url ~ "[?&;]id=282(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Categories"));
    } elsif (req.url ~ "[?&;]id=289(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Redirects"));
    } elsif (req.url ~ "[?&;]id=296(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Sections"));
    } elsif (req.url ~ "[?&;]id=303(&|;|$)") {
        return (synth(861, "https://" + req.http.Host + "/wiki/Help:Footnotes"));
    } elsif (req.url ~ "[?&;]title=[^&;]+") {
        return (synth(861, "https://" + req.http.Host + "/wiki/"
            + regsub(req.url, "^.*[?&;]title=([^&;]+).*$", "\1")));
    } else {
        return (synth(410, "The old number of a page that is no more"));
    }
}

# Spellings of characters in titles: one page has one address.
sub normal_title {
    if (req.url !~ "^/wiki/[^?]*%") {
        return;
    }
    set req.url = regsuball(req.url, "%3[Aa]", ":");  # colon
    set req.url = regsuball(req.url, "%2[Ff]", "/");  # slash
    set req.url = regsuball(req.url, "%40", "@");  # at
    set req.url = regsuball(req.url, "%21", "!");  # exclamation mark
    set req.url = regsuball(req.url, "%2[Aa]", "*");  # asterisk
    set req.url = regsuball(req.url, "%28", "(");  # parenthesis
    set req.url = regsuball(req.url, "%29", ")");  # parenthesis
    set req.url = regsuball(req.url, "%2[Cc]", ",");  # comma
    set req.url = regsuball(req.url, "%3[Bb]", ";");  # semicolon
    set req.url = regsuball(req.url, "%27", "'");  # apostrophe
    set req.url = regsuball(req.url, "%2[Dd]", "-");  # hyphen
    set req.url = regsuball(req.url, "%7[Ee]", "~");  # tilde
    set req.url = regsuball(req.url, "%20", "_");  # space
    set req.url = regsuball(req.url, "%5[Ff]", "_");  # underscore
}

# ===========================================================================
# 6  Requests
# ===========================================================================

sub purge_requests {
    if (req.method == "PURGE" || req.method == "BAN") {
        if (client.ip !~ farm && client.ip !~ operators) {
            return (synth(405, "Not from here"));
        }
        if (req.method == "PURGE") {
            return (purge);
        }
        if (std.ban("obj.http.X-Wiki == " + req.http.X-Wiki + " && obj.http.X-Path ~ " + req.url)) {
            return (synth(200, "Banned"));
        }
        return (synth(400, std.ban_error()));
    }
}

sub address_of_client {
    if (remote.ip ~ tls_terminators) {
        set req.http.X-Client-IP = regsub(req.http.X-Forwarded-For, "^.*?([0-9a-fA-F:.]+)$", "\1");
        set req.http.X-Scheme = "https";
    } else {
        set req.http.X-Client-IP = "" + client.ip;
        set req.http.X-Scheme = "http";
    }
    set client.identity = req.http.X-Client-IP;
}

sub writes_of_closed_networks {
    if (req.method != "POST" || req.http.Cookie ~ "UserID=") {
        return;
    }
    if (std.ip(req.http.X-Client-IP, "0.0.0.0") ~ closed_networks) {
        if (req.url ~ "[?&]action=(submit|edit)" || str.startswith(req.url, "/w/api.php")) {
            return (synth(403, "An account is required from this network"));
        }
    }
}

sub limits {
    if (client.ip ~ farm || client.ip ~ known_crawlers) {
        return;
    }
    if (req.url ~ "^/w/(api|rest)\.php" && vsthrottle.is_denied("api:" + client.identity, 500, 10s)) {
        return (synth(429, "Too many calls"));
    }
    if (req.url ~ "[?&]action=(history|raw|info)" && vsthrottle.is_denied("costly:" + client.identity, 60, 1m, 2m)) {
        return (synth(429, "Too many pages of history"));
    }
    if (req.url ~ "[?&](diff|oldid)=" && vsthrottle.is_denied("diff:" + client.identity, 30, 10s)) {
        return (synth(429, "Too many comparisons"));
    }
}

sub cookies {
    if (!req.http.Cookie) {
        return;
    }
    cookie.parse(req.http.Cookie);
    if (cookie.get_re("(Session|UserID|Token)$") != "") {
        set req.http.X-Account = "1";
        return;
    }
    unset req.http.X-Account;
    if (cookie.isset("variant")) {
        set req.http.X-Variant = regsub(cookie.get("variant"), "[^a-z-]", "");
    }
    if (cookie.isset("nightMode") && cookie.get("nightMode") == "1") {
        set req.http.X-Skin = "night";
    }
    unset req.http.Cookie;
}

# Languages with several scripts: the script that the reader prefers.
sub script_of_language {
    if (!req.http.X-Language || req.http.X-Variant) {
        return;
    }
    if (req.http.X-Language == "sr") {
        if (req.http.Accept-Language ~ "(?i)\bsr-(ec|el)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(sr-(ec|el))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "sr-ec";
        }
    } elsif (req.http.X-Language == "zh") {
        if (req.http.Accept-Language ~ "(?i)\bzh-(cn|hk|mo|my|sg|tw)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(zh-(cn|hk|mo|my|sg|tw))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "zh-cn";
        }
    } elsif (req.http.X-Language == "kk") {
        if (req.http.Accept-Language ~ "(?i)\bkk-(arab|cyrl|latn)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(kk-(arab|cyrl|latn))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "kk-cyrl";
        }
    } elsif (req.http.X-Language == "uz") {
        if (req.http.Accept-Language ~ "(?i)\buz-(cyrl|latn)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(uz-(cyrl|latn))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "uz-latn";
        }
    } elsif (req.http.X-Language == "ku") {
        if (req.http.Accept-Language ~ "(?i)\bku-(arab|latn)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(ku-(arab|latn))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "ku-latn";
        }
    } elsif (req.http.X-Language == "tg") {
        if (req.http.Accept-Language ~ "(?i)\btg-(latn|cyrl)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(tg-(latn|cyrl))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "tg-cyrl";
        }
    } elsif (req.http.X-Language == "iu") {
        if (req.http.Accept-Language ~ "(?i)\bike-(cans|latn)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(ike-(cans|latn))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "ike-cans";
        }
    } elsif (req.http.X-Language == "shi") {
        if (req.http.Accept-Language ~ "(?i)\bshi-(tfng|latn)\b") {
            set req.http.X-Variant = std.tolower(regsub(req.http.Accept-Language, "(?i)^.*?\b(shi-(tfng|latn))\b.*$", "\1"));
        } else {
            set req.http.X-Variant = "shi-latn";
        }
    }
}

sub vcl_recv {
    if (req.url == "/farm-status") {
        return (synth(870));
    }
    if (req.url == "/beacon.gif") {
        return (synth(871));
    }
    unset req.http.Proxy;
    unset req.http.X-Closed;
    unset req.http.X-Variant;
    unset req.http.X-Skin;
    unset req.http.X-Account;

    if (req.restarts == 0) {
        call address_of_client;
    }
    call renamed_hosts;
    call wiki_of_host;
    call purge_requests;
    call old_pages;
    call normal_title;
    call writes_of_closed_networks;
    call limits;

    if (req.http.X-Scheme == "http" && req.method == "GET" && client.ip !~ farm) {
        return (synth(861, "https://" + req.http.Host + req.url));
    }

    if (req.method != "GET" && req.method != "HEAD" && req.method != "OPTIONS") {
        if (req.method == "POST" || req.method == "PUT" || req.method == "DELETE") {
            return (pass);
        }
        return (synth(501, "Not implemented"));
    }

    call cookies;
    call script_of_language;

    if (req.http.X-Closed || req.http.X-Account || req.http.Authorization) {
        return (pass);
    }
    if (req.url ~ "^/wiki/Special:(Random|MyPage|MyTalk)") {
        return (pass);
    }
    if (req.http.X-Wiki == "dumps" && req.url ~ "\.(7z|bz2|zst)$") {
        return (pipe);
    }
    if (!std.healthy(req.backend_hint)) {
        set req.grace = 1d;
    } else {
        set req.grace = 1m;
    }
    if (req.url ~ "^/w/parse\b") {
        set req.backend_hint = parser.backend(by=KEY, key=parser.key(req.http.X-Wiki + req.url));
    }
    std.collect(req.http.Accept);
    return (hash);
}

sub vcl_hash {
    hash_data(req.http.X-Wiki);
    hash_data(req.url);
    if (req.http.X-Variant) {
        hash_data("variant=" + req.http.X-Variant);
    }
    if (req.http.X-Skin) {
        hash_data("skin=" + req.http.X-Skin);
    }
    return (lookup);
}

sub vcl_pipe {
    unset bereq.http.X-Client-IP;
    set bereq.http.Connection = "close";
}

sub vcl_pass {
    if (req.http.X-Closed && client.ip !~ farm && !req.http.X-Account && req.url !~ "Special:UserLogin") {
        return (synth(403, "This wiki is for its members"));
    }
}

sub vcl_miss {
    if (req.http.X-Only-If-Cached) {
        return (synth(504, "Not stored"));
    }
}

sub vcl_hit {
    if (obj.hits % 1000 == 0 && obj.hits > 0) {
        std.log("hot: " + req.http.X-Wiki + " " + req.url + " " + obj.hits);
    }
    if (obj.ttl < 0s) {
        set req.http.X-Stale = "1";
    }
}

# ===========================================================================
# 7  Responses
# ===========================================================================

sub vcl_backend_fetch {
    set bereq.http.X-Farm = server.hostname;
    unset bereq.http.X-Stale;
    if (bereq.http.X-Wiki == "maps") {
        set bereq.first_byte_timeout = 8s;
    } elsif (bereq.url ~ "[?&]action=(purge|delete|import)") {
        set bereq.first_byte_timeout = 3m;
    }
    if (bereq.retries > 0 && bereq.http.X-Wiki == "media") {
        set bereq.backend = media.backend(by=URL, alt=bereq.retries, healthy=ALL);
    }
}

sub times_of_files {
    if (beresp.status == 200 || beresp.status == 304) {
        set beresp.ttl = 7d;
        set beresp.grace = 1d;
        set beresp.keep = 30d;
        unset beresp.http.Set-Cookie;
    } elsif (beresp.status == 404) {
        set beresp.ttl = 5m;
    } elsif (beresp.status == 429) {
        set beresp.ttl = std.duration(beresp.http.Retry-After + "s", 5s);
        set beresp.uncacheable = true;
    }
    if (std.integer(beresp.http.Content-Length, 0) > 50000000) {
        set beresp.uncacheable = true;
        set beresp.ttl = 1h;
    }
}

sub times_of_pages {
    if (beresp.ttl > 1d) {
        set beresp.ttl = 1d;
    }
    if (beresp.http.X-Edited-At && std.time(beresp.http.X-Edited-At, now) > now - 10m) {
        # A page that is being edited is kept for a short time only.
        set beresp.ttl = 15s;
    }
    set beresp.grace = 20m;
    set beresp.keep = 2d;
    if (beresp.http.Set-Cookie) {
        if (beresp.http.Set-Cookie ~ "(Session|Token)=") {
            set beresp.uncacheable = true;
            set beresp.ttl = 2m;
        } else {
            header.remove(beresp.http.Set-Cookie, "^(last_visit|geo)=");
        }
    }
}

sub vcl_backend_response {
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    if (beresp.status == 503 && bereq.retries < 2 && bereq.method == "GET") {
        return (retry);
    }
    set beresp.http.X-Wiki = bereq.http.X-Wiki;
    set beresp.http.X-Path = bereq.url;

    if (bereq.uncacheable) {
        return (deliver);
    }
    if (bereq.http.X-Wiki == "media" || bereq.http.X-Wiki == "maps") {
        call times_of_files;
    } else {
        call times_of_pages;
    }
    if (beresp.http.Content-Type ~ "^(text/|application/(json|javascript|xml))" && !beresp.http.Content-Encoding) {
        set beresp.do_gzip = true;
    }
    if (beresp.ttl <= 0s) {
        return (pass(2m));
    }
}

sub vcl_backend_error {
    if (bereq.retries < 2) {
        return (retry);
    }
    set beresp.http.Content-Type = "text/html; charset=utf-8";
    set beresp.http.Retry-After = "30";
    set beresp.ttl = 1s;
    set beresp.grace = 0s;
    set beresp.body = {"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>The wiki does not answer</title>
<h1>The wiki does not answer</h1>
<p>Our servers are busy or being repaired. Please try again in half a minute.</p>
<p><small>"} + beresp.status + " · " + bereq.http.X-Wiki + " · " + bereq.xid + " · " + now + {"</small></p>
</html>
"};
    return (deliver);
}

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = server.identity + " hit/" + obj.hits;
    } elsif (obj.uncacheable) {
        set resp.http.X-Cache = server.identity + " pass";
    } else {
        set resp.http.X-Cache = server.identity + " miss";
    }
    if (req.http.X-Stale) {
        set resp.http.X-Cache += " stale";
    }
    unset resp.http.X-Wiki;
    unset resp.http.X-Path;
    unset resp.http.X-Edited-At;
    unset resp.http.X-Powered-By;
    unset resp.http.Via;

    # Browsers ask for pages again each time: only the farm hears of edits.
    if (req.url ~ "^/wiki/" && resp.status == 200) {
        set resp.http.Cache-Control = "private, s-maxage=0, max-age=0, must-revalidate";
    }
    if (req.http.X-Variant) {
        set resp.http.Content-Language = req.http.X-Variant;
        set resp.http.Vary = resp.http.Vary + ", Accept-Language";
    }
    if (client.ip ~ operators && req.http.X-Debug) {
        set resp.http.X-Debug = "wiki=" + req.http.X-Wiki
            + " backend=" + req.backend_hint
            + " ttl=" + obj.ttl
            + " age=" + obj.age
            + " grace=" + obj.grace
            + " key=" + blob.encode(HEX, blob=req.hash);
    }
    std.log("wiki:" + req.http.X-Wiki + " time:" + (now - req.time));
}

# ===========================================================================
# 8  Pages of errors
# ===========================================================================

sub vcl_synth {
    if (resp.status == 861) {
        set resp.http.Location = resp.reason;
        set resp.http.Cache-Control = "max-age=3600";
        set resp.status = 301;
        set resp.reason = "Moved Permanently";
        return (deliver);
    }
    if (resp.status == 870) {
        set resp.status = 200;
        set resp.http.Content-Type = "application/json";
        set resp.body = {"{ "server": ""} + server.identity + {"","} + """
  "time": """ + std.integer(time=now) + """,
  "restarts": """ + req.restarts + """ }
""";
        return (deliver);
    }
    if (resp.status == 871) {
        set resp.status = 200;
        set resp.http.Content-Type = "image/gif";
        set resp.http.Cache-Control = "no-store";
        set resp.body = empty_gif.encode();
        return (deliver);
    }
}

sub vcl_synth {
    set resp.http.Content-Type = "text/html; charset=utf-8";
    if (resp.status == 429) {
        set resp.http.Retry-After = "60";
    }
    set resp.body = {"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>"} + resp.status + " " + resp.reason + {"</title>
<h1>"} + resp.reason + {"</h1>"};
    if (resp.status == 403) {
        set resp.body += "<p>See <a href='/wiki/Help:Accounts'>how to get an account</a>.</p>";
    } elsif (resp.status == 404) {
        set resp.body += "<p>All wikis stand in the <a href='https://wiki.example.net/'>list</a>.</p>";
    } elsif (resp.status == 429) {
        set resp.body += "<p>Please ask for fewer pages at a time; the dumps have all of them.</p>";
    }
    set resp.body += "<p><small>" + req.xid + "</small></p></html>";
    return (deliver);
}
