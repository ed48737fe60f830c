vcl 4.1;

import directors;

backend cache1 { .host = "10.9.1.1"; .port = "6081"; }
backend cache2 { .host = "10.9.1.2"; .port = "6081"; }
backend cache3 { .host = "10.9.1.3"; .port = "6081"; }

sub vcl_init {
	new second_tier = directors.hash();
	second_tier.add_backend(cache1, 1);
	second_tier.add_backend(cache2, 1);
	second_tier.add_backend(cache3, 1);
}

sub vcl_recv {
	set req.backend_hint = second_tier.backend(req.url);	# a URL is always on the same machine
	if (req.method == "GET" || req.method == "HEAD") {
		unset req.http.Cookie;
		return (hash);
	}
	return (pass);
}

sub vcl_hash {
	hash_data(req.url);
	return (lookup);
}
