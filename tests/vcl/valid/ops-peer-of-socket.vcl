vcl 4.1;

import unix;
import std;

backend app { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
    if (local.endpoint ~ "^/") {
        # Only the user and the group of the deployment may come by the socket.
        if (unix.user() != "deploy" && unix.group() != "deploy") {
            return (synth(403));
        }
        if (unix.uid() < 1000 || unix.gid() == 0) {
            std.log("system account: " + unix.uid() + "/" + unix.gid());
        }
        if (req.method == "PURGE") {
            return (purge);
        }
    } elsif (req.method == "PURGE") {
        return (synth(405));
    }
}
