"""`loadtest explore` with a sample, or with the Python sample to which a test adds protections."""

import json
import os
import subprocess

from basics import BUILD
from lab import PATIENCE
from test_check import MODULES, SAMPLES

PYTHON = SAMPLES / "python"
# What a service needs apart from sell(), which returns the status of an answer and its headers.
SERVER = '''
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply(200, {})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.reply(*sell(os.environ["PROTECTION"]))

    def reply(self, status, headers):
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | headers).items():
            self.send_header(name, value)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
'''


def served(folder, sells, **members):
    """Writes a service to FOLDER whose function sell(PROTECTION) is in the code SELLS, and returns the path of its description."""
    (folder / "shop.py").write_text(sells + SERVER, encoding="utf-8")
    return described(folder, **members)


def extended(folder, protections, **members):
    """Writes the Python sample to FOLDER with the code PROTECTIONS in front of its table's rows, and returns the path of its description."""
    text = (PYTHON / "shop.py").read_text(encoding="utf-8")
    (folder / "shop.py").write_text(text.replace("PROTECTIONS = {\n", protections, 1), encoding="utf-8")
    return described(folder, **members)


def described(folder, **members):
    """Writes the description of the Python service in FOLDER, with other MEMBERS; None removes one."""
    shop = json.loads((PYTHON / "shop.json").read_text(encoding="utf-8"))
    shop |= {"schema": str(SAMPLES / "schema.sql"), "start": ["/usr/bin/python3", str(folder / "shop.py")]} | members
    text = json.dumps({name: value for name, value in shop.items() if value is not None}, indent=1)
    (folder / "shop.json").write_text(text, encoding="utf-8")
    return folder / "shop.json"


def explore(description, protection, *options):
    return loadtest("explore", description, protection, *options)


def loadtest(name, description, protection, *options):
    command = [BUILD / "loadtest", name, description, "--env", f"PROTECTION={protection}", *map(str, options)]
    env = {"NODE_PATH": MODULES} | os.environ
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=240 * PATIENCE, check=False)


def result(*arguments):
    ran = explore(*arguments, "--format", "json")
    assert ran.returncode in (0, 1), ran.stderr
    found = json.loads(ran.stdout)
    assert ran.returncode == int(found["verdict"] != "clean"), found
    return found
