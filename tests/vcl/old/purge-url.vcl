# vcl 2
backend cms { .host = "10.15.0.1"; .port = "9000"; }

acl cms_hosts {
	"10.15.0.1";
	"10.15.0.2";
}

sub vcl_recv {
	if (req.request == "PURGE") {
		if (!client.ip ~ cms_hosts) {
			error 403 "Forbidden";
		}
		purge_url(req.url);	# a regular expression!
		log "purged " req.url;
		error 200 "OK";
	}
	if (req.request != "GET" && req.request != "HEAD") { return (pass); }
	return (lookup);
}

sub vcl_error {
	set obj.http.Content-Type = "text/plain; charset=utf-8";
	synthetic {"cms: "} obj.response {"
"};
	return (deliver);
}
