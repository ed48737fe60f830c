vcl 4.1;

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
		return (synth(503, "Maintenance"));
	}

	if (req.http.Host ~ "^archive\.") { set req.backend_hint = archive; }
	else { set req.backend_hint = default; }

	if (req.method == "PURGE") {
		if (client.ip !~ newsroom) { return (synth(405, "Not allowed")); }
		return (purge);
	}

	if (req.method != "GET" && req.method != "HEAD" && req.method != "POST") {
		return (synth(405, "Method not allowed"));
	}
	if (req.method == "POST") { return (pass); }

	if (req.http.Upgrade) { return (pipe); }

	std.collect(req.http.Cookie);
	if (req.http.Cookie ~ "subscriber=") {
		return (pass);
	}
	unset req.http.Cookie;
	set req.http.Host = std.tolower(req.http.Host);
	set req.url = regsub(req.url, "[?&](utm_source|utm_medium|utm_campaign)=[^&]+", "");
	return (hash);
}

sub vcl_pipe {
	if (bereq.method == "CONNECT") { return (synth(405, "No tunnels")); }
	unset bereq.http.X-Forwarded-For;
	set bereq.http.X-Forwarded-For = client.ip;
	return (pipe);
}

sub vcl_pass {
	set req.http.X-Passed = "1";
	return (fetch);
}

sub vcl_hash {
	hash_data(req.url);
	hash_data(req.http.Host);
	return (lookup);
}

sub vcl_purge {
	return (synth(200, "Gone"));
}

sub vcl_hit {
	if (obj.ttl <= 0s) { return (pass); }
	return (deliver);
}

sub vcl_miss {
	return (fetch);
}

sub vcl_backend_response {
	if (beresp.ttl <= 0s || beresp.http.Set-Cookie || beresp.http.Vary == "*") {
		set beresp.uncacheable = true;
		set beresp.ttl = 120s;
		return (deliver);
	}
	if (bereq.http.Host ~ "^archive\." && bereq.url !~ "^/search") {
		set beresp.ttl = 1d;
		set beresp.http.X-Long = "1";
	}
	if (beresp.status == 404 && bereq.url ~ "\.html$") {
		set beresp.ttl = std.duration("5s", 1s);
	}
	return (deliver);
}

sub vcl_deliver {
	unset resp.http.X-Long;
	unset resp.http.Server;
	return (deliver);
}

sub vcl_synth {
	if (resp.status == 503) { set resp.http.Retry-After = "600"; }
	return (deliver);
}

sub vcl_backend_error {
	if (beresp.status == 503) { set beresp.http.Retry-After = "600"; }
	return (deliver);
}

sub vcl_fini {
	return (ok);
}
