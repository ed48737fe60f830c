vcl 4.0;

import directors;
import saintmode;

backend node1 { .host = "192.0.2.122"; .port = "80"; }
backend node2 { .host = "192.0.2.123"; .port = "80"; }

sub vcl_init {
    new sm1 = saintmode.saintmode(node1, 8);
    new sm2 = saintmode.saintmode(node2, threshold = 8);
    new nodes = directors.round_robin();
    nodes.add_backend(sm1.backend());
    nodes.add_backend(sm2.backend());
}

sub vcl_backend_fetch {
    set bereq.backend = nodes.backend();
}

sub vcl_backend_response {
    if (beresp.status >= 500 || beresp.http.X-Broken) {
        saintmode.blacklist(15s);
        return (retry);
    }
}

sub vcl_recv {
    if (req.url == "/saint") {
        return (synth(777));
    }
}

sub vcl_synth {
    if (resp.status == 777) {
        set resp.status = 200;
        set resp.http.Content-Type = "application/json";
        set resp.http.X-Count = sm1.blacklist_count() + sm2.blacklist_count();
        synthetic(saintmode.status());
        return (deliver);
    }
}
