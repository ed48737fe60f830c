vcl 4.0;

import std;
import cookie;
import xkey;

/* ---------------------------------------------------------------
 * A network of blogs on one installation.
 * The plugin sends PURGE with X-Purge-Method, or BAN, or PURGEKEYS.
 * --------------------------------------------------------------- */

backend default {
	.host = "192.0.2.70";
	.port = "8080";
	.connect_timeout = 2s;
	.first_byte_timeout = 45s;
}

acl purgers {
	"192.0.2.70";
	"192.0.2.71";
	"localhost";
}

sub purge_of_plugin
{
	if (client.ip !~ purgers) {
		return (synth(405, "Not from " + client.ip));
	}
	if (req.http.X-Purge-Method == "regex") {
		ban("req.url ~ " + req.url + " && req.http.host == " + req.http.host);
		return (synth(200, "Banned"));
	} elseif (req.http.X-Purge-Method == "host") {
		ban("req.http.host == " + req.http.host);
		return (synth(200, "Host banned"));
	} elseif (req.http.X-Purge-Method == "exact") {
		ban("req.url == " + req.url + " && req.http.host == " + req.http.host);
		return (synth(200, "Exact URL banned"));
	} else {
		return (purge);
	}
}

sub vcl_recv
{
	if (req.method == "PURGE") {
		call purge_of_plugin;
	}
	if (req.method == "PURGEKEYS") {
		if (client.ip !~ purgers) {
			return (synth(405));
		}
		if (xkey.purge(req.http.X-Keys) == 0) {
			return (synth(404, "No such keys"));
		}
		return (synth(200, "Keys purged"));
	}
	if (req.method == "BAN") {
		if (client.ip !~ purgers) {
			return (synth(405));
		}
		if (!std.ban("obj.http.X-Blog == " + req.http.X-Blog + " && obj.http.X-Post == " + req.http.X-Post)) {
			return (synth(400, std.ban_error()));
		}
		return (synth(200, "Banned"));
	}

	if (req.url ~ "^/wp-(admin|login|cron)" || req.url ~ "^/xmlrpc\.php") {
		return (pass);
	}
	if (req.http.Cookie) {
		cookie.parse(req.http.Cookie);
		cookie.filter("_ga,_gid,_gat,has_js");
		if (cookie.get_re("^(wordpress_logged_in|wp-postpass|comment_author)") != "") {
			set req.http.Cookie = cookie.get_string();
			return (pass);
		}
		unset req.http.Cookie;
	}
	// Names of blogs are the first part of the host or of the path.
	if (req.http.host ~ "^[a-z0-9-]+\.blogs\.example\.org$") {
		set req.http.X-Blog = regsub(req.http.host, "\..*$", "");
	} elseif (req.url ~ "^/[a-z0-9-]+/") {
		set req.http.X-Blog = regsub(req.url, "^/([a-z0-9-]+)/.*$", "\1");
	} else {
		set req.http.X-Blog = "main";
	}
}

sub vcl_backend_response
{
	set beresp.http.X-Blog = bereq.http.X-Blog;
	if (beresp.status == 200 && bereq.url !~ "^/wp-") {
		unset beresp.http.Set-Cookie;
		set beresp.ttl = 1h;
		set beresp.grace = 1d;
	}
	if (beresp.http.Last-Modified) {
		# An old post is kept longer: a tenth of its age, in whole seconds.
		if (std.time2integer(now, 0) - std.time2integer(std.time(beresp.http.Last-Modified, now), 0) > 864000) {
			set beresp.ttl = std.duration(integer = std.real2integer(86400.5, 86400), fallback = 1d);
		}
	}
}

sub vcl_purge
{
	std.log("purged:" + req.http.host + req.url);
	if (req.http.X-Refill) {
		set req.method = "GET";
		unset req.http.X-Refill;
		return (restart);
	}
}

sub vcl_deliver
{
	if (client.ip !~ purgers) {
		unset resp.http.X-Blog;
		unset resp.http.X-Post;
		unset resp.http.xkey;
	}
	if (resp.http.X-Remember) {
		set resp.http.Set-Cookie = "remember=1; Expires=" + cookie.format_rfc1123(now, 90d);
	}
}
