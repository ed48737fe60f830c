vcl 4.0;

backend default { .host = "127.0.0.1"; .port = "8080"; .first_byte_timeout = 2m; }

sub vcl_recv {
    set req.http.X-Forwarded-For = client.ip;

    if (req.http.Cookie ~ "be_typo_user" || req.url ~ "^/typo3/") {
        return (pass);
    }
    if (req.http.Cookie ~ "fe_typo_user") {
        # Sessions of visitors are only of use in the members' area.
        if (req.url ~ "^/members/") {
            return (pass);
        } else {
            unset req.http.Cookie;
        }
    }
    if (req.url ~ "[?&](no_cache|eID)=") {
        return (pass);
    }
}

sub vcl_backend_response {
    if (beresp.http.Pragma ~ "no-cache" || beresp.http.X-No-Store) {
        set beresp.uncacheable = true;
    } else {
        unset beresp.http.Set-Cookie;
    }
}
