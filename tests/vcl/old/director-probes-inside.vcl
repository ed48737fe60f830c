# vcl 2
director pool random {
  {
    .backend = {
      .host = "10.12.0.1";
      .port = "80";
      .first_byte_timeout = 30s;
      .probe = {
        .request =
          "GET /ok HTTP/1.1"
          "Host: www.example.com"
          "Connection: close";
        .interval = 5s;
        .timeout = 300 ms;
        .window = 8;
        .threshold = 3;
      }
    }
    .weight = 7;
  }
  {
    .backend = {
      .host = "10.12.0.2";
      .port = "80";
      .first_byte_timeout = 30s;
      .probe = {
        .url = "/ok";
        .interval = 5s;
        .timeout = 300 ms;
      }
    }
    .weight = 3;
  }
}

sub vcl_recv {
  set req.backend = pool;
  if (req.http.Cookie ~ "login") {
    return (pass);
  }
  unset req.http.Cookie;
  return (lookup);
}

sub vcl_fetch {
  esi;
  set beresp.ttl = 30s;
}
