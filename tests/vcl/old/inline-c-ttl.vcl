# vcl 2
backend app {
    .host = "192.168.4.20";
    .port = "8000";
}

C{
    #include <stdlib.h>
}C

sub vcl_recv {
    if (req.request != "GET") {
        return (pass);
    }
    return (lookup);
}

sub vcl_fetch {
    # The application says in X-TTL how many seconds are good for us.
    if (beresp.http.X-TTL) {
        C{
            char *ttl = VRT_GetHdr(sp, HDR_BERESP, "\006X-TTL:");
            VRT_l_beresp_ttl(sp, atoi(ttl));
        }C
        unset beresp.http.X-TTL;
        return (deliver);
    }
}
