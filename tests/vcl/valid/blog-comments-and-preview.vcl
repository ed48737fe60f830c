vcl 4.0;

backend default { .host = "192.0.2.3"; .port = "80"; }

sub vcl_recv {
	if (req.url ~ "[?&]preview(_id|_nonce)?=") { return (pass); }
	if (req.method == "POST" && req.url ~ "comment") { return (pass); }
	# A person who has written a comment sees it at once.
	if (req.http.Cookie ~ "comment_author_") { return (pass); }
	unset req.http.Cookie;
}

sub vcl_deliver
{
	if (req.method == "POST")
	{
		set resp.http.Cache-Control = "no-store";
	}
}
