# vcl 3
backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
	if (req.http.X-Forwarded-Proto !~ "(?i)https" && req.url ~ "^/login") {
		error 801 "Over TLS, please";
	}
}

sub vcl_error {
	/* 801: to the same page over TLS */
	if (obj.status == 801) {
		set obj.http.Location = "https://" + req.http.host + req.url;
		set obj.status = 301;
		return (deliver);
	}
	/* the backend was away: once more */
	if (obj.status == 503 && req.restarts < 3) {
		return (restart);
	}
	/* all others */
	set obj.http.Content-Type = "text/plain";
	synthetic {"Error "} + obj.status + {".
"};
	return (deliver);
}
