vcl 4.1;

import vtc;
import blob;
import std;

# Makes rare states on purpose; for a test machine only.

backend default { .host = "127.0.0.1"; .port = "8080"; }

backend greeted {
    .host = "127.0.0.1";
    .port = "8081";
    .preamble = :UFJPWFkgVU5LTk9XTg0K:;
}

sub limits_of_memory {
    if (req.url == "/memory/small") {
        vtc.workspace_alloc(client, -500);
    } elsif (req.url == "/memory/none") {
        vtc.workspace_overflow(client);
    } elsif (req.url == "/memory/again") {
        vtc.workspace_snapshot(client);
        vtc.workspace_alloc(client, 1024);
        vtc.workspace_reset(client);
    } elsif (req.url == "/memory/reserve") {
        set req.http.X-Reserved = vtc.workspace_reserve(client, 2048);
    }
    if (vtc.workspace_overflowed(client)) {
        std.log("overflowed");
    }
    set req.http.X-Free = "" + vtc.workspace_free(session) + " " + vtc.workspace_free(thread);
}

sub sizes {
    set req.http.X-Sizes =
        "pointer " + vtc.typesize("p") +
        " int " + vtc.typesize("i") +
        " long " + vtc.typesize("l");
    set req.http.X-Dump = blob.encode(HEX, blob=vtc.workspace_dump(client, s, 0B, 32B));
    set req.http.X-Dump-Free = blob.encode(HEX, UPPER, vtc.workspace_dump(client, f));
}

sub vcl_recv {
    {
        # A block of its own is allowed.
        unset req.http.X-Sizes;
        {
            unset req.http.X-Dump;
        }
    }
    if (req.url ~ "^/memory/") {
        call limits_of_memory;
    } elsif (req.url == "/slow") {
        vtc.sleep(2s);
    } elsif (req.url == "/wait") {
        vtc.barrier_sync("/run/lab/barrier", 5s);
    } elsif (req.url == "/no-backend") {
        set req.backend_hint = vtc.no_backend();
    } elsif (req.url == "/no-address") {
        set req.http.X-Address = vtc.no_ip();
    } elsif (req.url == "/sizes") {
        call sizes;
    } elsif (req.url == "/greeted") {
        set req.backend_hint = greeted;
        set req.http.X-Header = blob.encode(HEX, blob=vtc.proxy_header(v2, client.ip, server.ip, "lab.example.org"));
    } elsif (req.url == "/log") {
        vtc.vsl(0, "Debug", c, "written by hand");
        vtc.vsl_replay("1001 ReqHeader c X-Replayed: 1");
    } elsif (req.url == "/syntax" && std.syntax(4.1) && !std.syntax(4.2)) {
        return (synth(200, "4.1"));
    } elsif (req.url == "/crash" && req.http.X-Really == "yes") {
        vtc.panic("on request");
    } else if (req.url == "/file") {
        set req.http.X-File = blob.encode(BASE64, blob=std.blobread("/etc/hostname"));
        set req.http.X-Length = blob.length(std.blobread("/etc/hostname"));
    }
    return (pass);
}

sub vcl_backend_fetch {
    if (bereq.url == "/memory/backend") {
        vtc.workspace_alloc(backend, -200);
    }
}

sub vcl_backend_response {
    if (bereq.url == "/no-storage") {
        set beresp.storage = vtc.no_stevedore();
    }
}

sub vcl_deliver {
    set resp.http.X-Sizes = req.http.X-Sizes;
    set resp.http.X-Dump = req.http.X-Dump;
    set resp.http.X-Free = req.http.X-Free;
}

sub vcl_fini {
    std.log("the laboratory closes");
}
