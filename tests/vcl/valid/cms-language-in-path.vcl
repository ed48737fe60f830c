vcl 4.1;

import accept;

backend default { .host = "192.0.2.50"; .port = "8080"; }

sub vcl_init {
    new language = accept.rule("en");
    language.add("de");
    language.add("fr");
    language.add("it");
    language.add("rm");
}

sub vcl_recv {
    if (req.url == "/" || req.url ~ "^/\?") {
        set req.http.X-Language = language.filter(req.http.Accept-Language);
        return (synth(750, "/" + req.http.X-Language + req.url));
    }
    unset req.http.Accept-Language;
}

sub vcl_synth {
    // Grüße, saluti, salids — the page is short.
    if (resp.status == 750) {
        set resp.body = "→ " + resp.reason + " (Übersicht)";
        set resp.http.Location = resp.reason;
        set resp.http.Vary = "Accept-Language";
        set resp.status = 302;
        set resp.reason = "Found";
        return (deliver);
    }
}
