# decision: restart-or-retry the second attempt takes another backend in vcl_recv, where a retry does not come: choose it in vcl_backend_fetch, as here, or restart from vcl_deliver
vcl 4.1;

backend near { .host = "10.18.0.1"; .port = "80"; }
backend far  { .host = "10.18.9.1"; .port = "80"; .first_byte_timeout = 5s; }

sub vcl_recv {
  set req.backend_hint = near;
  if (req.method == "POST") {
    return (pass);
  }
}

sub vcl_backend_fetch {
  if (bereq.retries > 0) {
    # second attempt
    set bereq.backend = far;
  }
}

sub vcl_backend_response {
  if (beresp.status >= 500 && bereq.retries == 0 && bereq.method != "POST") {
    return (retry);
  }
}

sub vcl_backend_error {
  if (beresp.status == 503 && bereq.retries == 0 && bereq.method != "POST") {
    return (retry);
  }
}
