vcl 4.1;

backend default { .host = "192.0.2.206"; .port = "8080"; }

sub vcl_recv {
    if (req.http.Accept ~ "application/hal\+json") {
        set req.http.Accept = "application/hal+json";
    } elsif (req.http.Accept ~ "(text|application)/csv") {
        set req.http.Accept = "text/csv";
    } elseif (req.http.Accept ~ "text/html" && req.http.User-Agent) {
        set req.http.Accept = "text/html";
    } elif (req.http.Accept) {
        set req.http.Accept = "application/json";
    } else if (req.url ~ "\.json$") {
        set req.http.Accept = "application/json";
    } else {
        return (synth(406, "Not Acceptable"));
    }
    if (req.url ~ "/stream$") {
        set req.hash_ignore_vary = true;
    }
}
