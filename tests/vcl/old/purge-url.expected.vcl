vcl 4.1;

import std;

backend cms { .host = "10.15.0.1"; .port = "9000"; }

acl cms_hosts {
	"10.15.0.1";
	"10.15.0.2";
}

sub vcl_recv {
	if (req.method == "PURGE") {
		if (!client.ip ~ cms_hosts) {
			return (synth(403, "Forbidden"));
		}
		ban("req.url ~ " + req.url);	# a regular expression!
		std.log("purged " + req.url);
		return (synth(200, "OK"));
	}
	if (req.method != "GET" && req.method != "HEAD") { return (pass); }
	return (hash);
}

sub vcl_synth {
	set resp.http.Content-Type = "text/plain; charset=utf-8";
	synthetic({"cms: "} + resp.reason + {"
"});
	return (deliver);
}

sub vcl_backend_error {
	set beresp.http.Content-Type = "text/plain; charset=utf-8";
	synthetic({"cms: "} + beresp.reason + {"
"});
	return (deliver);
}
