//! The messages that are measured: what load generators send, what browsers send, what an application answers.

/// As wrk sends it.
pub(crate) const SHORT_REQUEST: &[u8] = b"GET /1024 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

/// As a browser sends it.
pub(crate) const BROWSER_REQUEST: &[u8] = b"GET /news/2026/11/resin-and-other-varnishes?page=2 HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Referer: https://www.example.com/news/\r\n\
    DNT: 1\r\n\
    Connection: keep-alive\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-User: ?1\r\n\
    Priority: u=0, i\r\n\r\n";

/// As the origin of the bench answers.
pub(crate) const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Server: origin\r\n\
    Date: Sat, 21 Nov 2026 08:00:12 GMT\r\n\
    Content-Type: text/html\r\n\
    Content-Length: 1024\r\n\
    Last-Modified: Sat, 21 Nov 2020 08:00:12 GMT\r\n\
    ETag: \"6b014f8c-400\"\r\n\
    Cache-Control: public, max-age=3600\r\n\r\n";

/// Its body.
pub(crate) const BODY: [u8; 1024] = [b'x'; 1024];
