# Three classes of devices from the User-Agent.
sub device_class {
    set req.http.X-Device = "desktop";
    if (req.http.User-Agent ~ "(?i)ipad|android(?!.*mobile)|tablet") {
        set req.http.X-Device = "tablet";
    } elsif (req.http.User-Agent ~ "(?i)iphone|ipod|android.*mobile|windows phone") {
        set req.http.X-Device = "phone";
    }
}
