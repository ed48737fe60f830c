# vcl 3
backend near { .host = "10.18.0.1"; .port = "80"; }
backend far  { .host = "10.18.9.1"; .port = "80"; .first_byte_timeout = 5s; }

sub vcl_recv {
  if (req.restarts == 0) {
    set req.backend = near;
  } else {
    # second attempt
    set req.backend = far;
  }
  if (req.request == "POST") {
    return (pass);
  }
}

sub vcl_fetch {
  if (beresp.status >= 500 && req.restarts == 0 && req.request != "POST") {
    return (restart);
  }
}

sub vcl_error {
  if (obj.status == 503 && req.restarts == 0 && req.request != "POST") {
    return (restart);
  }
}
