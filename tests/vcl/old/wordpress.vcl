# vcl 3
# Varnish for the blog. Last change: the comment form is not cached any more.

backend default {
	.host = "127.0.0.1";
	.port = "8080";
	.connect_timeout = 5s;
	.first_byte_timeout = 60s;
	.between_bytes_timeout = 10s;
}

acl purge {
	"localhost";
	"127.0.0.1";
	"192.0.2.10"; // the web server
}

sub vcl_recv {
	set req.grace = 2m;

	# PURGE comes from the plug-in
	if (req.request == "PURGE") {
		if (!client.ip ~ purge) {
			error 405 "Not allowed.";
		}
		return (lookup);
	}

	if (req.request != "GET" &&
	    req.request != "HEAD" &&
	    req.request != "PUT" &&
	    req.request != "POST" &&
	    req.request != "OPTIONS" &&
	    req.request != "DELETE") {
		return (pipe);
	}
	if (req.request != "GET" && req.request != "HEAD") {
		return (pass);
	}

	# the back office is never cached
	if (req.url ~ "wp-(login|admin)" || req.url ~ "preview=true") {
		return (pass);
	}

	# cookies of Analytics and of the plug-ins
	set req.http.Cookie = regsuball(req.http.Cookie, "(^|; ) *__utm.=[^;]+;? *", "\1");
	set req.http.Cookie = regsuball(req.http.Cookie, "has_js=[^;]+(; )?", "");
	if (req.http.Cookie ~ "^ *$") {
		remove req.http.Cookie;
	}

	# static files need no cookie at all
	if (req.url ~ "\.(css|js|png|gif|jp(e)?g|ico|swf)(\?.*)?$") {
		remove req.http.Cookie;
		return (lookup);
	}

	# logged in, or has commented
	if (req.http.Cookie ~ "wordpress_logged_in|comment_author_|wp-postpass") {
		return (pass);
	}
	return (lookup);
}

sub vcl_hit {
	if (req.request == "PURGE") {
		purge;
		error 200 "Purged.";
	}
}

sub vcl_miss {
	if (req.request == "PURGE") {
		purge;
		error 200 "Purged.";
	}
}

sub vcl_fetch {
	set beresp.grace = 2m;
	if (!(req.url ~ "wp-(login|admin)") && !(req.request == "POST")) {
		remove beresp.http.Set-Cookie;
	}
	if (req.url ~ "\.(css|js|png|gif|jp(e)?g|ico|swf)(\?.*)?$") {
		set beresp.ttl = 1d;
	}
	if (beresp.ttl <= 0s || beresp.http.Vary == "*") {
		set beresp.ttl = 120s;
		return (hit_for_pass);
	}
	return (deliver);
}

sub vcl_deliver {
	if (obj.hits > 0) {
		set resp.http.X-Cache = "HIT";
	} else {
		set resp.http.X-Cache = "MISS";
	}
	remove resp.http.X-Varnish;
	remove resp.http.Via;
}
