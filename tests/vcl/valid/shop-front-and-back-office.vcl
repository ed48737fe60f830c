# Front of a shop: pages, checkout, back office, invalidation by tags.
vcl 4.0;

import std;

backend default {
	.host = "127.0.0.1";
	.port = "8080";
	.first_byte_timeout = 300s;
	.probe = {
		.url = "/status/live";
		.timeout = 3s;
		.interval = 7s;
		.window = 6;
		.threshold = 4;
	}
}

acl back_office {
	"localhost";
	"192.0.2.0"/28;
	"2001:db8:10::"/48;
}

sub vcl_recv {
	if (req.restarts > 0) {
		set req.hash_always_miss = true;
	}

	call invalidate;

	if (req.method != "GET" &&
	    req.method != "HEAD" &&
	    req.method != "PUT" &&
	    req.method != "POST" &&
	    req.method != "PATCH" &&
	    req.method != "OPTIONS" &&
	    req.method != "DELETE") {
		return (pipe);
	}
	if (req.method != "GET" && req.method != "HEAD") {
		return (pass);
	}

	if (req.url ~ "^/(order|payment|profile)/" || req.url ~ "^/back-office") {
		return (pass);
	}
	if (req.url ~ "^/status/") {
		return (pass);
	}

	if (std.healthy(req.backend_hint)) {
		set req.grace = 2m;
	}

	set req.url = regsub(req.url, "^https?://[^/]+", "");
	std.collect(req.http.Cookie, "; ");
	call encodings;

	if (req.url ~ "[?&](utm_[a-z]+|gclid|msclkid|ref)=") {
		set req.url = regsuball(req.url, "(utm_[a-z]+|gclid|msclkid|ref)=[^&]*&?", "");
		set req.url = regsub(req.url, "[?&]+$", "");
	}

	if (req.url ~ "^/(photos|theme)/") {
		unset req.http.X-Forwarded-Proto;
		unset req.http.Cookie;
	}
	if (req.http.Authorization ~ "^Bearer ") {
		return (pass);
	}
	return (hash);
}

# Bans by tags of products, and by the group of the template.
sub invalidate {
	if (req.method != "PURGE") {
		return;
	}
	if (client.ip !~ back_office) {
		return (synth(403, "Not from here"));
	}
	if (!req.http.X-Tags && !req.http.X-Template) {
		return (synth(400, "X-Tags or X-Template expected"));
	}
	if (req.http.X-Tags) {
		ban("obj.http.X-Tags ~ " + req.http.X-Tags);
	}
	if (req.http.X-Template) {
		ban("obj.http.X-Template == " + req.http.X-Template);
	}
	return (synth(200, "Gone"));
}

sub encodings {
	if (!req.http.Accept-Encoding) {
		return;
	}
	if (req.url ~ "\.(jpe?g|png|gif|webp|mp4|zip|gz|br)$") {
		unset req.http.Accept-Encoding;
	} elsif (req.http.Accept-Encoding ~ "gzip") {
		set req.http.Accept-Encoding = "gzip";
	} elsif (req.http.Accept-Encoding ~ "deflate" && req.http.User-Agent !~ "MSIE [1-6]\.") {
		set req.http.Accept-Encoding = "deflate";
	} else {
		unset req.http.Accept-Encoding;
	}
}

sub vcl_hash {
	if (req.http.Cookie ~ "price_list=") {
		hash_data(regsub(req.http.Cookie, "^(?:.*; )?price_list=([^;]*).*$", "\1"));
	}
	if (req.http.X-Forwarded-Proto) {
		hash_data(req.http.X-Forwarded-Proto);
	}
	if (req.url ~ "^/query") {
		call hash_query_fields;
	}
}

sub hash_query_fields {
	if (req.http.X-Store) {
		hash_data(req.http.X-Store);
	}
	if (req.http.X-Currency) {
		hash_data(req.http.X-Currency);
	}
}

sub vcl_backend_response {
	set beresp.grace = 2d;

	if (beresp.http.Content-Type ~ "^text/html") {
		set beresp.do_esi = true;
	}
	if (bereq.url ~ "\.(js|css|svg)$" || beresp.http.Content-Type ~ "^text/") {
		set beresp.do_gzip = true;
	}

	if (beresp.status != 200 && beresp.status != 404) {
		set beresp.uncacheable = true;
		set beresp.ttl = 1h;
		return (deliver);
	}
	if (beresp.ttl > 0s && (bereq.method == "GET" || bereq.method == "HEAD")) {
		unset beresp.http.Set-Cookie;
	}
	if (beresp.ttl <= 0s ||
	    beresp.http.Cache-Control ~ "private|no-store" ||
	    beresp.http.Vary == "*") {
		set beresp.ttl = 90s;
		set beresp.uncacheable = true;
	}
	return (deliver);
}

sub vcl_deliver {
	if (resp.http.X-Debug) {
		if (obj.uncacheable) {
			set resp.http.X-Cache = "uncacheable";
		} else if (obj.hits) {
			set resp.http.X-Cache = "hit";
			set resp.http.X-Grace = req.http.X-Grace;
		} else {
			set resp.http.X-Cache = "miss";
		}
	} else {
		unset resp.http.Age;
	}

	if (resp.http.Cache-Control !~ "private" && req.url !~ "^/(photos|theme)/") {
		set resp.http.Expires = "-1";
		set resp.http.Cache-Control = "no-store, must-revalidate, max-age=0";
	}

	unset resp.http.X-Debug;
	unset resp.http.X-Tags;
	unset resp.http.X-Template;
	unset resp.http.X-Powered-By;
	unset resp.http.Server;
	unset resp.http.X-Varnish;
	unset resp.http.Via;
}

sub vcl_hit {
	if (obj.ttl >= 0s) {
		return (deliver);
	}
	if (std.healthy(req.backend_hint)) {
		if (obj.ttl + 2m > 0s) {
			set req.http.X-Grace = "short";
			return (deliver);
		} else {
			set req.hash_always_miss = true;
			return (restart);
		}
	} else {
		set req.http.X-Grace = "long";
		return (deliver);
	}
}
