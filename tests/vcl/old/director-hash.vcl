# vcl 3
backend cache1 { .host = "10.9.1.1"; .port = "6081"; }
backend cache2 { .host = "10.9.1.2"; .port = "6081"; }
backend cache3 { .host = "10.9.1.3"; .port = "6081"; }

director second_tier hash {
	.retries = 2;
	{ .backend = cache1; .weight = 1; }
	{ .backend = cache2; .weight = 1; }
	{ .backend = cache3; .weight = 1; }
}

sub vcl_recv {
	set req.backend = second_tier;	# a URL is always on the same machine
	if (req.request == "GET" || req.request == "HEAD") {
		unset req.http.Cookie;
		return (lookup);
	}
	return (pass);
}

sub vcl_hash {
	hash_data(req.url);
	return (hash);
}
