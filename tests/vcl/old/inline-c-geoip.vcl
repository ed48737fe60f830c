# vcl 3
# The country of the visitor, from a plug-in that is loaded at the start.

C{
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
static const char *(*country_of)(const char *ip) = NULL;

__attribute__((constructor)) void load_country(void)
{
    void *h = dlopen("/opt/geo/libcountry.so", RTLD_NOW);
    if (h != NULL)
        country_of = (const char *(*)(const char *)) dlsym(h, "country_of");
}
}C

backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    C{
        if (country_of != NULL)
            VRT_SetHdr(sp, HDR_REQ, "\012X-Country:", country_of(VRT_IP_string(sp, VRT_r_client_ip(sp))), vrt_magic_string_end);
    }C
    if (req.request == "POST") {
        return (pass);
    }
}

sub vcl_hash {
    if (req.http.X-Country) {
        hash_data(req.http.X-Country);
    }
}
