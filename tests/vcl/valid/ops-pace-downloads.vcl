vcl 4.1;

import tcp;
import std;

backend default { .host = "192.0.2.126"; .port = "80"; }

sub vcl_recv {
    if (req.url ~ "\.(iso|img|tar\.xz)$") {
        tcp.set_socket_pace(2000);
        std.set_ip_tos(8);
    }
    if (tcp.get_estimated_rtt() > 250.0) {
        if (tcp.congestion_algorithm("bbr") != 0) {
            std.log("no bbr here");
        }
    }
    if (req.http.X-Tcp-Info == "dump") {
        tcp.dump_info();
    }
}
