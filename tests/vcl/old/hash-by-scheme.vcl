# vcl 2
backend plain { .host = "10.16.0.1"; .port = "80"; }

sub vcl_recv {
	if (server.port == 8443) {
		set req.http.X-Scheme = "https";
	} else {
		set req.http.X-Scheme = "http";
	}
	if (req.request != "GET" && req.request != "HEAD") {
		return (pass);
	}
	return (lookup);
}

sub vcl_hash {
	set req.hash += req.url;
	if (req.http.host) {
		set req.hash += req.http.host;
	} else {
		set req.hash += server.ip;
	}
	/* the same page has other links over TLS */
	set req.hash += req.http.X-Scheme;
	hash;
}
