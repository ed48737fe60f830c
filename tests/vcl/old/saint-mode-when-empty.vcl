# vcl 3
/* Some pages come empty when the search engine is slow. */
backend search {
	.host = "10.22.0.1";
	.port = "8983";
	.saintmode_threshold = 20;
}

sub vcl_fetch {
	if (req.url ~ "^/select" && beresp.http.Content-Length == "0") {
		set beresp.saintmode = 1m;
		return (restart);
	}
	set beresp.grace = 1h;
	set beresp.ttl = 30s;
}

sub vcl_recv {
	set req.grace = 1h;
	remove req.http.Cookie;
}
