vcl 4.1;

include "parts/acl-office.vcl";
include "./parts/backends-two.vcl";

sub vcl_recv {
    call pick_backend;
    if (req.method == "PURGE") {
        if (client.ip ~ office) {
            return (purge);
        }
        return (synth(405));
    }
}

include "parts/hit-or-miss.vcl";
