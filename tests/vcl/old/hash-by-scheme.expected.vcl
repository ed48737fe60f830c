vcl 4.1;

import std;

backend plain { .host = "10.16.0.1"; .port = "80"; }

sub vcl_recv {
	if (std.port(server.ip) == 8443) {
		set req.http.X-Scheme = "https";
	} else {
		set req.http.X-Scheme = "http";
	}
	if (req.method != "GET" && req.method != "HEAD") {
		return (pass);
	}
	return (hash);
}

sub vcl_hash {
	hash_data(req.url);
	if (req.http.host) {
		hash_data(req.http.host);
	} else {
		hash_data(server.ip);
	}
	/* the same page has other links over TLS */
	hash_data(req.http.X-Scheme);
	return (lookup);
}
