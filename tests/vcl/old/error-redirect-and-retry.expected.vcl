vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
	if (req.http.X-Forwarded-Proto !~ "(?i)https" && req.url ~ "^/login") {
		return (synth(801, "Over TLS, please"));
	}
}

sub vcl_synth {
	/* 801: to the same page over TLS */
	if (resp.status == 801) {
		set resp.http.Location = "https://" + req.http.host + req.url;
		set resp.status = 301;
		return (deliver);
	}
	/* all others */
	set resp.http.Content-Type = "text/plain";
	synthetic({"Error "} + resp.status + {".
"});
	return (deliver);
}

sub vcl_backend_error {
	/* the backend was away: once more */
	if (beresp.status == 503 && bereq.retries < 3) {
		return (retry);
	}
	/* all others */
	set beresp.http.Content-Type = "text/plain";
	synthetic({"Error "} + beresp.status + {".
"});
	return (deliver);
}
