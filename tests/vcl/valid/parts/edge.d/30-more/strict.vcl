sub strict_transport {
    set resp.http.Strict-Transport-Security = "max-age=31536000; includeSubDomains";
}
