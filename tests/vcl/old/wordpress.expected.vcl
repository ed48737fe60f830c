vcl 4.1;

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
	if (req.method == "PURGE") {
		if (!client.ip ~ purge) {
			return (synth(405, "Not allowed."));
		}
		return (purge);
	}

	if (req.method != "GET" &&
	    req.method != "HEAD" &&
	    req.method != "PUT" &&
	    req.method != "POST" &&
	    req.method != "OPTIONS" &&
	    req.method != "DELETE") {
		return (pipe);
	}
	if (req.method != "GET" && req.method != "HEAD") {
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
		unset req.http.Cookie;
	}

	# static files need no cookie at all
	if (req.url ~ "\.(css|js|png|gif|jp(e)?g|ico|swf)(\?.*)?$") {
		unset req.http.Cookie;
		return (hash);
	}

	# logged in, or has commented
	if (req.http.Cookie ~ "wordpress_logged_in|comment_author_|wp-postpass") {
		return (pass);
	}
	return (hash);
}

sub vcl_purge {
	return (synth(200, "Purged."));
}

sub vcl_backend_response {
	set beresp.grace = 2m;
	if (!(bereq.url ~ "wp-(login|admin)") && !(bereq.method == "POST")) {
		unset beresp.http.Set-Cookie;
	}
	if (bereq.url ~ "\.(css|js|png|gif|jp(e)?g|ico|swf)(\?.*)?$") {
		set beresp.ttl = 1d;
	}
	if (beresp.ttl <= 0s || beresp.http.Vary == "*") {
		set beresp.ttl = 120s;
		set beresp.uncacheable = true;
		return (deliver);
	}
	return (deliver);
}

sub vcl_deliver {
	if (obj.hits > 0) {
		set resp.http.X-Cache = "HIT";
	} else {
		set resp.http.X-Cache = "MISS";
	}
	unset resp.http.X-Varnish;
	unset resp.http.Via;
}
