vcl 4.1;

import proxy;
import std;

# TLS ends before this cache; the PROXY protocol brings what was agreed.

backend default { .host = "127.0.0.1"; .port = "8080"; }

backend with_certificates {
    .host = "127.0.0.1";
    .port = "8090";
    .proxy_header = 1;
}

acl terminators {
    "127.0.0.1";
    "::1";
    "10.7.0.0"/29;
}

acl reserved {
    "0.0.0.0"/8;
    "10.0.0.0"/8;
    "100.64.0.0"/10;
    "127.0.0.0"/8;
    "169.254.0.0"/16;
    "172.16.0.0"/12;
    "192.168.0.0"/16;
    "fc00::"/7;
    "fe80::"/10;
}

sub fields_of_connection {
    unset req.http.X-Forwarded-Proto;
    unset req.http.X-Client-Cert;
    unset req.http.X-Tls;
    if (proxy.is_ssl()) {
        set req.http.X-Forwarded-Proto = "https";
        set req.http.X-Tls = proxy.ssl_version() + " " + proxy.ssl_cipher() + " " + proxy.alpn();
        std.log("tls " + req.http.X-Tls);
    } else {
        set req.http.X-Forwarded-Proto = "http";
    }
}

sub host_as_agreed {
    if (proxy.authority() && req.http.Host != proxy.authority()) {
        return (synth(421));
    }
}

sub certificates {
    if (req.url !~ "^/staff/") {
        return;
    }
    if (!proxy.client_has_cert_sess()) {
        return (synth(403, "A certificate is required"));
    }
    if (proxy.ssl_verify_result() != 0) {
        return (synth(403, "The certificate is not valid: " + proxy.ssl_verify_result()));
    }
    if (proxy.client_has_cert_conn()) {
        set req.http.X-Client-Cert = proxy.client_cert_cn() + ";" + proxy.cert_key() + ";" + proxy.cert_sign();
    } else {
        set req.http.X-Client-Cert = proxy.client_cert_cn() + ";resumed";
    }
    set req.backend_hint = with_certificates;
    return (pass);
}

sub vcl_recv {
    if (req.restarts == 0) {
        if (remote.ip !~ terminators && std.port(local.ip) != 80) {
            return (synth(400, "Not by the terminator"));
        }
        # The last address that is not one of ours.
        set req.http.X-Address = client.ip;
        if (client.ip ~ reserved && req.http.X-Forwarded-For) {
            set req.http.X-Address = regsub(req.http.X-Forwarded-For, "^.*?([0-9a-f:.]+)(, *(10|127|192\.168)\.[0-9.]+)*$", "\1");
        }
    }
    call fields_of_connection;
    if (req.http.X-Forwarded-Proto == "https") {
        call host_as_agreed;
        call certificates;
    } else if (std.port(server.ip) != 443 && req.method == "GET" && req.url !~ "^/\.well-known/acme-challenge/") {
        return (synth(308, "https://" + req.http.Host + req.url));
    }
}

sub vcl_hash {
    hash_data(req.http.X-Forwarded-Proto);
}

sub vcl_synth {
    if (resp.status == 308) {
        set resp.http.Location = resp.reason;
        set resp.reason = "Permanent Redirect";
        set resp.body = "";
        return (deliver);
    }
    if (resp.status == 421 || resp.status == 403) {
        set resp.http.Connection = "close";
        set resp.http.Content-Type = "text/plain; charset=utf-8";
        set resp.body = resp.reason;
        return (deliver);
    }
}

sub vcl_deliver {
    if (req.http.X-Forwarded-Proto == "https") {
        set resp.http.Strict-Transport-Security = "max-age=63072000";
    }
    if (req.transport == "H1" && resp.proto != "HTTP/1.1") {
        set resp.http.Connection = "close";
    }
}
