vcl 4.0;

import std;
import directors;
import saintmode;

backend web1 {
    .host = "127.0.0.1";
    .port = "8080";
    .probe = { .url = "/"; .interval = 5s; .window = 3; .threshold = 2; }
}

backend web2 {
    .host = "127.0.0.1";
    .port = "8090";
    .probe = { .url = "/"; .interval = 5s; .window = 3; .threshold = 2; }
}

acl monitors {
    "127.0.0.1";
    "192.0.2.16"/28;
}

sub vcl_init
{
    new sm1 = saintmode.saintmode(web1, 20);
    new sm2 = saintmode.saintmode(backend = web2, threshold = 20);
    new web = directors.fallback();
    web.add_backend(sm1.backend());
    web.add_backend(sm2.backend());
}

# /cache-health          for the load balancer: one word
# /cache-health/details  for the monitors: every backend
sub vcl_recv
{
    set req.backend_hint = web.backend();

    if (req.url == "/cache-health")
    {
        if (std.healthy(req.backend_hint))
        {
            return (synth(200, "healthy"));
        }
        elsif (std.healthy(web1) || std.healthy(web2))
        {
            return (synth(200, "half"));
        }
        return (synth(503, "sick"));
    }
    if (req.url == "/cache-health/details")
    {
        if (client.ip !~ monitors)
        {
            return (synth(404));
        }
        set req.http.X-Web1 = sm1.is_healthy();
        set req.http.X-Web2 = sm2.is_healthy();
        return (synth(799, "details"));
    }
}

sub vcl_synth
{
    if (req.url == "/cache-health")
    {
        set resp.http.Content-Type = "text/plain";
        set resp.http.Cache-Control = "no-store";
        synthetic(resp.reason + {"
"});
        return (deliver);
    }
    if (resp.status == 799)
    {
        set resp.status = 200;
        set resp.reason = "OK";
        set resp.http.Content-Type = "text/plain";
        synthetic({"server    "} + server.hostname + {"
time      "} + now + {"
web1      "} + req.http.X-Web1 + " (" + sm1.blacklist_count() + {" objects)
web2      "} + req.http.X-Web2 + " (" + sm2.blacklist_count() + {" objects)
transient "} + storage.Transient.used_space + {" bytes
"});
        return (deliver);
    }
}

sub vcl_backend_response
{
    if (beresp.status == 500 || beresp.http.X-Sick == "yes")
    {
        saintmode.blacklist(30s);
        if (bereq.retries < 1)
        {
            return (retry);
        }
    }
}

sub vcl_deliver
{
    if (client.ip ~ monitors)
    {
        set resp.http.X-Backend = req.backend_hint;
    }
}
