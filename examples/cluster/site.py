"""The site of this example: each page takes 780 ms to render, and shows how often pages were rendered.

Listens on a free port of 127.0.0.1, and writes it to standard output.
"""

import http.server
import itertools
import time

RENDERING_SECONDS = 0.78

PAGE = """<!DOCTYPE html>
<title>Shop</title>
<h1>{path}</h1>
<p>Rendering {number} since the site started.</p>
"""

renderings = itertools.count(1)


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(RENDERING_SECONDS)
        path = self.path.replace("&", "&amp;").replace("<", "&lt;")
        body = PAGE.format(path=path, number=next(renderings)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
print(server.server_port, flush=True)
server.serve_forever()
