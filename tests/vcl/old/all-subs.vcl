# vcl 3
/* ------------------------------------------------------------------
 * newspaper.vcl
 *
 * 2012-03-01  first version
 * 2012-09-17  pages for subscribers
 * 2013-01-08  maintenance switch
 * ------------------------------------------------------------------ */

import std;

backend default {
	.host				= "10.25.0.1";
	.port				= "http";
	.connect_timeout		= 2s;
	.first_byte_timeout		= 20s;
	.between_bytes_timeout		= 5s;
	.max_connections		= 250;
}

backend archive {
	.host				= "10.25.0.2";
	.port				= "http";
}

acl newsroom {
	"localhost";
	"10.25.0.0"/24;
	! "10.25.0.254";
}

sub vcl_recv {
	/* switched on by the file's content, read again after a reload */
	if (std.fileread("/dev/null") ~ "on" && client.ip !~ newsroom) {
		error 503 "Maintenance";
	}

	if (req.http.Host ~ "^archive\.") { set req.backend = archive; }
	else { set req.backend = default; }

	if (req.request == "PURGE") {
		if (client.ip !~ newsroom) { error 405 "Not allowed"; }
		return (lookup);
	}

	if (req.request != "GET" && req.request != "HEAD" && req.request != "POST") {
		error 405 "Method not allowed";
	}
	if (req.request == "POST") { return (pass); }

	if (req.http.Upgrade) { return (pipe); }

	std.collect(req.http.Cookie);
	if (req.http.Cookie ~ "subscriber=") {
		return (pass);
	}
	remove req.http.Cookie;
	set req.http.Host = std.tolower(req.http.Host);
	set req.url = regsub(req.url, "[?&](utm_source|utm_medium|utm_campaign)=[^&]+", "");
	return (lookup);
}

sub vcl_pipe {
	if (bereq.request == "CONNECT") { error 405 "No tunnels"; }
	remove bereq.http.X-Forwarded-For;
	set bereq.http.X-Forwarded-For = client.ip;
	return (pipe);
}

sub vcl_pass {
	set bereq.http.X-Passed = "1";
	return (pass);
}

sub vcl_hash {
	hash_data(req.url);
	hash_data(req.http.Host);
	return (hash);
}

sub vcl_hit {
	if (req.request == "PURGE") { purge; error 200 "Gone"; }
	if (obj.ttl <= 0s) { return (pass); }
	return (deliver);
}

sub vcl_miss {
	if (req.request == "PURGE") { purge; error 404 "Was not here"; }
	return (fetch);
}

sub vcl_fetch {
	if (beresp.ttl <= 0s || beresp.http.Set-Cookie || beresp.http.Vary == "*") {
		return (hit_for_pass);
	}
	if (req.http.Host ~ "^archive\." && req.url !~ "^/search") {
		set beresp.ttl = 1d;
		set beresp.http.X-Long = "1";
	}
	if (beresp.status == 404 && req.url ~ "\.html$") {
		set beresp.ttl = std.duration("5s", 1s);
	}
	return (deliver);
}

sub vcl_deliver {
	remove resp.http.X-Long;
	remove resp.http.Server;
	return (deliver);
}

sub vcl_error {
	if (obj.status == 503) { set obj.http.Retry-After = "600"; }
	return (deliver);
}

sub vcl_fini {
	return (ok);
}
