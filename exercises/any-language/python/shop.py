"""The HTTP server around an exercise: POST /orders calls order(product_id, quantity) of the file that ORDER names, and answers 201 if it
returns True, 409 if it returns False."""

import json
import os
import runpy
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

order = runpy.run_path(os.environ["ORDER"])["order"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body go out together

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_GET(self):
        self.answer(200)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            sold = order(body["product_id"], body["quantity"])
        except Exception as error:  # whatever an exercise raises
            print(f"shop: {error!r}", file=sys.stderr, flush=True)
            return self.answer(503)
        self.answer(201 if sold else 409)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
