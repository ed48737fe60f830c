vcl 4.1;

import directors;

backend pool1 {
  .host = "10.12.0.1";
  .port = "80";
  .first_byte_timeout = 30s;
  .probe = {
    .request =
      "GET /ok HTTP/1.1"
      "Host: www.example.com"
      "Connection: close";
    .interval = 5s;
    .timeout = 300ms;
    .window = 8;
    .threshold = 3;
  }
}
backend pool2 {
  .host = "10.12.0.2";
  .port = "80";
  .first_byte_timeout = 30s;
  .probe = {
    .url = "/ok";
    .interval = 5s;
    .timeout = 300ms;
  }
}

sub vcl_init {
  new pool = directors.random();
  pool.add_backend(pool1, 7);
  pool.add_backend(pool2, 3);
}

sub vcl_recv {
  set req.backend_hint = pool.backend();
  if (req.http.Cookie ~ "login") {
    return (pass);
  }
  unset req.http.Cookie;
  return (hash);
}

sub vcl_backend_response {
  set beresp.do_esi = true;
  set beresp.ttl = 30s;
}
