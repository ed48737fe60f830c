vcl 4.0;

backend default { .host = "127.0.0.1"; .port = "8080"; }

/* The inside, but not the guests' network, but one machine of it. */
acl inside {
	"10.0.0.0" / 8;
	! "10.66.0.0" / 16;
	"10.66.0.10";
	! "10.0.0.1";
	"fd00::" / 8;
}

sub vcl_recv
{
	if (! (client.ip ~ inside)) {
		return (synth(403, "Inside only"));
	}
	if (!(req.url ~ "^/public/") && !req.http.X-Ticket) {
		return (pass);
	}
}
