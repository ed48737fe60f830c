# decision: saint-mode the module saintmode keeps its list for each backend
vcl 4.1;

import saintmode;

/* Some pages come empty when the search engine is slow. */
backend search {
	.host = "10.22.0.1";
	.port = "8983";
}

sub vcl_init {
	new search_saint = saintmode.saintmode(search, 20);
}

sub vcl_backend_response {
	if (bereq.url ~ "^/select" && beresp.http.Content-Length == "0") {
		saintmode.blacklist(1m);
		return (retry);
	}
	set beresp.grace = 1h;
	set beresp.ttl = 30s;
}

sub vcl_recv {
	set req.backend_hint = search_saint.backend();
	set req.grace = 1h;
	unset req.http.Cookie;
}
