# vcl 3
director www round-robin {
    {
        .backend = {
            .host = "192.0.2.31";
            .port = "8080";
        }
    }
    {
        .backend = {
            .host = "192.0.2.32";
            .port = "8080";
        }
    }
    /* the third one is for the nightly jobs
    {
        .backend = {
            .host = "192.0.2.33";
        }
    }
    */
}

sub vcl_recv {
    set req.backend = www;
    if (req.request != "GET" && req.request != "HEAD") {
        return (pass);
    }
    return (lookup);
}
