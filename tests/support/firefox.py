"""A headless Firefox that a test steers as it steers Chromium (browser.py).

Debian has no geckodriver, so Selenium's commands go straight to Firefox's own remote control, Marionette: JSON over TCP, each message with
its length before it (https://firefox-source-docs.mozilla.org/testing/marionette/)."""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.webdriver import WebDriver

from basics import PATIENCE, START_S, die_with_parent, wait_until
from browser import NETWORK_NAME, ROLES, SHOTS, Browser

REPLY_S = 60 * PATIENCE  # longest wait for the answer to a command
LONGEST_MESSAGE = 64 << 20  # a picture of a page is the longest

# Selenium's commands as Marionette has them.
COMMANDS = {
    Command.NEW_SESSION: "WebDriver:NewSession",
    Command.GET: "WebDriver:Navigate",
    Command.GO_BACK: "WebDriver:Back",
    Command.GO_FORWARD: "WebDriver:Forward",
    Command.REFRESH: "WebDriver:Refresh",
    Command.GET_CURRENT_URL: "WebDriver:GetCurrentURL",
    Command.GET_TITLE: "WebDriver:GetTitle",
    Command.GET_PAGE_SOURCE: "WebDriver:GetPageSource",
    Command.FIND_ELEMENT: "WebDriver:FindElement",
    Command.FIND_ELEMENTS: "WebDriver:FindElements",
    Command.FIND_CHILD_ELEMENT: "WebDriver:FindElement",
    Command.FIND_CHILD_ELEMENTS: "WebDriver:FindElements",
    Command.W3C_GET_ACTIVE_ELEMENT: "WebDriver:GetActiveElement",
    Command.CLICK_ELEMENT: "WebDriver:ElementClick",
    Command.CLEAR_ELEMENT: "WebDriver:ElementClear",
    Command.SEND_KEYS_TO_ELEMENT: "WebDriver:ElementSendKeys",
    Command.GET_ELEMENT_TEXT: "WebDriver:GetElementText",
    Command.GET_ELEMENT_TAG_NAME: "WebDriver:GetElementTagName",
    Command.GET_ELEMENT_RECT: "WebDriver:GetElementRect",
    Command.GET_ELEMENT_ATTRIBUTE: "WebDriver:GetElementAttribute",
    Command.GET_ELEMENT_PROPERTY: "WebDriver:GetElementProperty",
    Command.GET_ELEMENT_VALUE_OF_CSS_PROPERTY: "WebDriver:GetElementCSSValue",
    Command.GET_ELEMENT_ARIA_ROLE: "WebDriver:GetComputedRole",
    Command.GET_ELEMENT_ARIA_LABEL: "WebDriver:GetComputedLabel",
    Command.IS_ELEMENT_SELECTED: "WebDriver:IsElementSelected",
    Command.IS_ELEMENT_ENABLED: "WebDriver:IsElementEnabled",
    Command.W3C_EXECUTE_SCRIPT: "WebDriver:ExecuteScript",
    Command.W3C_EXECUTE_SCRIPT_ASYNC: "WebDriver:ExecuteAsyncScript",
    Command.W3C_ACTIONS: "WebDriver:PerformActions",
    Command.W3C_CLEAR_ACTIONS: "WebDriver:ReleaseActions",
    Command.SCREENSHOT: "WebDriver:TakeScreenshot",
    Command.ELEMENT_SCREENSHOT: "WebDriver:TakeScreenshot",
    Command.SET_TIMEOUTS: "WebDriver:SetTimeouts",
    Command.W3C_GET_WINDOW_HANDLES: "WebDriver:GetWindowHandles",
    Command.W3C_GET_CURRENT_WINDOW_HANDLE: "WebDriver:GetWindowHandle",
    Command.SWITCH_TO_WINDOW: "WebDriver:SwitchToWindow",
    Command.W3C_ACCEPT_ALERT: "WebDriver:AcceptAlert",
    Command.W3C_DISMISS_ALERT: "WebDriver:DismissAlert",
    Command.W3C_GET_ALERT_TEXT: "WebDriver:GetAlertText",
}

PREFERENCES = {
    "marionette.port": 0,  # a free one, which is written into the profile
    "remote.prefs.recommended": True,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.download.folderList": 2,
    "browser.download.useDownloadDir": True,
    "browser.helperApps.neverAsk.saveToDisk": "text/csv,text/markdown,application/json",
    "datareporting.policy.dataSubmissionEnabled": False,
    "devtools.console.stdout.content": False,
    "focusmanager.testmode": True,  # a window that is not in front takes keys as one that is
    "extensions.getAddons.cache.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.localDomains": NETWORK_NAME,
    "security.sandbox.warn_unprivileged_namespaces": False,
    "toolkit.telemetry.enabled": False,
}

# Chrome is here what Firefox calls its own window around the page.
SIZE = """
const browser = gBrowser.selectedBrowser, [width, height] = arguments;
for (const [name, value] of [["width", width], ["height", height]])
  for (const bound of ["min-", "max-", ""]) browser.style.setProperty(bound + name, value + "px", "important");
browser.style.setProperty("flex", "none", "important");
"""
# Tab leads from the last control of the page to Firefox's own. A test stays in the page.
STAY = "if (document.activeElement !== gBrowser.selectedBrowser) gBrowser.selectedBrowser.focus();"
SCHEME = 'Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", arguments[0] === "dark" ? 0 : 1);'
REFUSE = """
const [path] = arguments;
window.refused = {
  observe: (request) => request.QueryInterface(Ci.nsIChannel).URI.spec.endsWith(path) && request.cancel(Cr.NS_ERROR_ABORT),
};
Services.obs.addObserver(window.refused, "http-on-modify-request");
"""
REFUSE_NO_MORE = 'Services.obs.removeObserver(window.refused, "http-on-modify-request");'
MEDIUM = "gBrowser.selectedBrowser.browsingContext.mediumOverride = arguments[0];"
# What a page is told, and not what Firefox tells of itself.
MESSAGES = """
const found = Services.console.getMessageArray().filter((m) => m instanceof Ci.nsIScriptError && /^(https?|file):/.test(m.sourceName))
  .map((m) => `${m.sourceName}:${m.lineNumber} ${m.errorMessage}`);
Services.console.reset();
return found;
"""


class Marionette:
    """The connection to a Firefox. Selenium takes it for its own connection to a driver."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=REPLY_S)
        self.unread = b""
        self.last = 0
        hello = self.receive()
        assert hello["marionetteProtocol"] == 3, hello

    def close(self):
        self.socket.close()

    def receive(self):
        """The next message."""
        while b":" not in self.unread:
            self.more()
        length, _, self.unread = self.unread.partition(b":")
        assert int(length) <= LONGEST_MESSAGE, f"a message of {length} bytes"
        while len(self.unread) < int(length):
            self.more()
        message, self.unread = self.unread[: int(length)], self.unread[int(length) :]
        return json.loads(message)

    def more(self):
        got = self.socket.recv(1 << 16)
        if not got:
            raise ConnectionError("Firefox closed the connection")
        self.unread += got

    def call(self, name, /, **parameters):
        """Returns (error or None, result)."""
        self.last += 1
        text = json.dumps([0, self.last, name, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        kind, number, error, result = self.receive()
        assert (kind, number) == (1, self.last), f"an answer to call {number}, not to {self.last}"
        return error, result

    def execute(self, command, parameters):
        """What Selenium calls: one of its commands, answered as its own connection would."""
        words = {name: value for name, value in parameters.items() if name != "sessionId"}
        if command == Command.NEW_SESSION:
            words = words["capabilities"]["alwaysMatch"]
        elif command in (Command.FIND_CHILD_ELEMENT, Command.FIND_CHILD_ELEMENTS):
            words["element"] = words.pop("id")
        elif command in (Command.SCREENSHOT, Command.ELEMENT_SCREENSHOT):
            words = {"full": False, "hash": False, "id": words.get("id")}
        error, result = self.call(COMMANDS[command], **words)
        if error:
            return {"status": 500, "value": json.dumps({"value": error})}
        return result if isinstance(result, dict) and ("value" in result or "sessionId" in result) else {"value": result}

    def in_chrome(self, script, *arguments):
        """Runs a script that may do what Firefox itself may."""
        self.do("Marionette:SetContext", value="chrome")
        try:
            return self.do("WebDriver:ExecuteScript", script=script, args=arguments)["value"]
        finally:
            self.do("Marionette:SetContext", value="content")

    def do(self, name, /, **parameters):
        """A call that must succeed."""
        error, result = self.call(name, **parameters)
        assert not error, f"{name}: {error}"
        return result


class Firefox(Browser):
    """One Firefox, with what a test can do in Chromium. Its downloads go to FOLDER."""

    shots = "firefox-"

    def __init__(self, folder):  # pylint: disable=super-init-not-called
        # Firefox puts all its files there.
        self.scratch = tempfile.mkdtemp(prefix="firefox-")
        self.process = self.marionette = None
        try:
            self.begin(Path(self.scratch), folder)
        except BaseException:
            self.quit()
            raise
        SHOTS.mkdir(parents=True, exist_ok=True)

    def begin(self, scratch, folder):
        profile = scratch / "profile"
        profile.mkdir()
        preferences = {**PREFERENCES, "browser.download.dir": str(folder)}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items()]
        (profile / "user.js").write_text("".join(lines))
        log = scratch / "log"
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                ["/usr/bin/firefox-esr", "--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", profile],
                env={**os.environ, "HOME": self.scratch, "TMPDIR": self.scratch, "MOZ_CRASHREPORTER_DISABLE": "1", "MOZ_HEADLESS": "1"},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip

        def port():
            assert self.process.poll() is None, f"Firefox ended with {self.process.returncode}: {log.read_text(errors='replace')}"
            path = profile / "MarionetteActivePort"
            return path.exists() and path.read_text().strip()

        self.marionette = Marionette(int(wait_until(port, "Firefox listens", START_S / PATIENCE)))
        self.driver = WebDriver(self.marionette, desired_capabilities={})
        self.driver.set_script_timeout(30 * PATIENCE)
        self.driver.set_page_load_timeout(30 * PATIENCE)
        self.size(1280, 900)

    def quit(self):
        """Kills all processes of Firefox, because it takes longer to exit itself. Removes the files that it has written."""
        if self.marionette:
            self.marionette.close()
        if self.process:
            with contextlib.suppress(ProcessLookupError):  # all have ended
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(START_S)
        self.remove_scratch()

    def set_scheme(self, scheme):
        self.marionette.in_chrome(SCHEME, scheme)

    @contextlib.contextmanager
    def on_paper(self, scheme):
        self.set_scheme(scheme)
        self.marionette.in_chrome(MEDIUM, "print")
        try:
            yield
        finally:
            self.marionette.in_chrome(MEDIUM, "")

    def offline(self):
        return self.without("")  # each address ends with the empty text

    @contextlib.contextmanager
    def without(self, path):
        self.marionette.in_chrome(REFUSE, path)
        try:
            yield
        finally:
            self.marionette.in_chrome(REFUSE_NO_MORE)

    def pdf(self):
        return base64.b64decode(self.marionette.do("WebDriver:Print", background=True)["value"])

    def size(self, width, height=800, phone=False, scale=1):  # pylint: disable=unused-argument
        """WIDTH and HEIGHT are in CSS pixels. A window of Firefox cannot be narrow, so the page in it is."""
        self.marionette.do("WebDriver:SetWindowRect", width=max(width, 500), height=height + 200)
        self.marionette.in_chrome(SIZE, width, height)
        self.wait(lambda: self.driver.execute_script("return [innerWidth, innerHeight]") == [width, height], f"{width} × {height}")

    def press(self, key):
        super().press(key)
        self.marionette.in_chrome(STAY)

    def complaints(self):
        return self.marionette.in_chrome(MESSAGES)

    def unnamed(self):
        """What a screen reader would meet without a name."""
        found = []

        def look():
            controls = self.all("button, select, input, textarea, a[href], summary, progress, img, [role]")
            found[:] = [e.aria_role for e in controls if e.is_displayed() and e.aria_role in ROLES | {"img"} and not e.accessible_name.strip()]
            return True

        self.wait(look, "no control is replaced meanwhile")
        return found
