"""A real browser, headless, that a test steers as a person would: it clicks, types and looks."""

import base64
import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import ElementClickInterceptedException, ElementNotInteractableException
from selenium.common.exceptions import JavascriptException, NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service as Driver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from basics import BUILD, PATIENCE, wait_until
from pictures import is_blank

SHOTS = BUILD / "tests" / "screenshots"
# Browsers find this machine by this name, as computers of a network do. It is so long that the class board wraps the line that has it.
NETWORK_NAME = "computers-of-the-first-floor.example"

# The contrast of each text on the page with what is behind it (WCAG 2, relative luminance), where it is too low.
# Colours that the browser does not give as rgb() are drawn to find out what they are.
LOW_CONTRAST = """
const [drawings] = arguments;
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(colour) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
}
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
function behind(element) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
  if (!text || element.closest(`${drawings ? "" : "svg,"} option, noscript, script, style, .skip`) || !element.checkVisibility()) continue;
  const style = getComputedStyle(element), ground = behind(element);
  const [a, b] = [luminance(over(rgba(element.closest("svg") ? style.fill : style.color), ground)), luminance(ground)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const large = parseFloat(style.fontSize) >= 24;
  if (ratio < (large ? 3 : 4.5)) found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
}
return found;
"""

# Labelled fields count with their labels; what is hidden until it has the focus does not count.
TOO_SMALL = """
const isSmall = ({ width, height }) => width < 24 || height < 24;
return [...document.querySelectorAll("button, select, input, summary, a, .line")]
  .filter((e) => e.checkVisibility() && isSmall(e.getBoundingClientRect()) && !e.matches("label input, .skip"))
  .map((e) => e.id || e.textContent);
"""

HOLD_CALLS = """
const [method, path] = arguments;
window.heldCalls = [];
window.unheldFetch = window.fetch;
window.fetch = (...call) =>
  call[1]?.method === method && call[0] === path
    ? new Promise((send) => window.heldCalls.push(send)).then(() => window.unheldFetch(...call))
    : window.unheldFetch(...call);
"""
EXPECT_CLICK = """
const [element] = arguments;
element.scrollIntoView({ block: "center" });
window.clickIsMissing = true;
element.addEventListener("click", () => (window.clickIsMissing = false), { capture: true, once: true });
"""

# Controls that a screen reader could not name, by the browser's own reckoning.
ROLES = {"button", "combobox", "textbox", "spinbutton", "checkbox", "link", "progressbar", "image"}


def named_by(folder):
    """The processes that have FOLDER in their environment or their command line."""
    found = []
    for file in (process / name for process in Path("/proc").glob("[0-9]*") for name in ("cmdline", "environ")):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if os.fsencode(folder) in file.read_bytes():
                found.append(file.parent.name)
    return found


class Browser:
    """One Chromium. Its downloads go to FOLDER."""

    shots = ""  # what the names of its pictures begin with
    width = None  # of the window, if a test has set it

    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
            options.add_argument(flag)
        options.add_argument(f"--host-resolver-rules=MAP {NETWORK_NAME} 127.0.0.1")
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # Chromium leaves a folder behind where it puts its temporary files; the path must be short, for a socket lies there.
        self.scratch = tempfile.mkdtemp(prefix="page-")
        driver = Driver("/usr/bin/chromedriver", env={**os.environ, "TMPDIR": self.scratch})
        self.driver = webdriver.Chrome(service=driver, options=options)
        self.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
        )
        self.driver.set_script_timeout(30 * PATIENCE)
        SHOTS.mkdir(parents=True, exist_ok=True)

    def quit(self):
        self.driver.quit()
        self.remove_scratch()

    def remove_scratch(self):
        # A process of the browser that is still ending may write into the folder, or make it again.
        gone = lambda: not named_by(self.scratch) and (shutil.rmtree(self.scratch, ignore_errors=True) or not os.path.exists(self.scratch))  # noqa: E731
        wait_until(gone, f"{self.scratch} is removed")

    def start(self, url, scheme="light", view="all"):
        """Opens the page with nothing stored in the browser but the choice of a VIEW: all controls, or with None the guided story."""
        self.set_scheme(scheme)
        self.driver.get(url)
        self.driver.execute_script("localStorage.clear(); sessionStorage.clear()")
        if view:
            self.driver.execute_script("localStorage.setItem('oversell.view', arguments[0])", view)
        self.complaints()
        self.driver.refresh()

    def open(self, url, scheme="light", view="all"):
        self.start(url, scheme, view)
        self.wait_text("pulse", "live")

    def set_scheme(self, scheme):
        """The colours that the user's system asks for: light or dark."""
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )

    @contextlib.contextmanager
    def on_paper(self, scheme):
        """Shows the page as it is printed, by a reader whose screen has the colours of SCHEME."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})

    @contextlib.contextmanager
    def offline(self):
        """Without a network."""
        conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**conditions, "offline": True})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**conditions, "offline": False})

    @contextlib.contextmanager
    def without(self, path):
        """No request to an address that ends with PATH leaves the browser."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": [f"*{path}"]})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})

    @contextlib.contextmanager
    def calls_held(self, method, path):
        """Calls of the page with this method and path are sent only afterwards. Yields a function: is one of them waiting?"""
        self.driver.execute_script(HOLD_CALLS, method, path)
        try:
            yield lambda: self.driver.execute_script("return heldCalls.length > 0")
        finally:
            self.driver.execute_script("heldCalls.splice(0).forEach((send) => send()); window.fetch = unheldFetch")

    def pdf(self):
        """What the printer gets."""
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])

    def size(self, width, height=800, phone=False, scale=1):
        """WIDTH and HEIGHT are in CSS pixels; each is SCALE pixels of the screen wide and high."""
        self.width = width
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone},
        )
        # The page reacts to its new size during the next frame. The second callback runs after it. A page that is being left draws no frame.
        with contextlib.suppress(JavascriptException):
            self.driver.execute_async_script("const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def find(self, name):
        return self.driver.find_element(By.ID, name)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, name):
        script = "return document.getElementById(arguments[0])?.textContent.trim() ?? ''"
        # Firefox returns null if it leaves the page during the call.
        return self.driver.execute_script(script, name) or ""

    def figure(self, name):
        """A big figure as a number, or None."""
        text = self.text(f"figure-{name}").replace(",", "")
        return float(text) if re.fullmatch(r"-?[0-9.]+", text) else None

    def click(self, what):
        """A click on the first element of a selector, or on the one with this id, as soon as it can be clicked on: the page shows
        a button when it has what the button needs. While the page is drawn a button may move away below the pointer; then the click
        does not reach it, and is repeated."""
        selector = what if re.search(r"[^\w-]", what) else f"#{what}"

        def try_to_click():
            element = self.driver.find_element(By.CSS_SELECTOR, selector)
            self.driver.execute_script(EXPECT_CLICK, element)
            try:
                element.click()
            except (ElementNotInteractableException, ElementClickInterceptedException):
                return False
            return not self.driver.execute_script("return window.clickIsMissing")  # a page that the click has opened has no such thing

        self.wait(try_to_click, f"{selector} can be clicked")

    def choose(self, name, value):
        self.wait(lambda: self.all(f'#{name} option[value="{value}"]'), f"#{name} offers {value}")
        Select(self.find(name)).select_by_value(value)

    def select_strategy(self, name):
        """Opens the map of strategies and selects one, without applying it."""
        if not self.all("#strategy-dialog[open]"):
            self.click("strategy-open")
        self.click(f'[data-strategy="{name}"]')
        self.wait(lambda: self.text("strategy-apply") in (f"Apply {name}", f"{name} is set"), f"{name} is selected")

    def apply_strategy(self, name):
        """Switches to a strategy by the map."""
        self.select_strategy(name)
        if self.find("strategy-apply").is_enabled():
            self.click("strategy-apply")
        else:
            self.click("strategy-close")
        self.wait(lambda: not self.find("strategy-dialog").is_displayed(), f"the map is closed, with {name}")

    def enter(self, name, value):
        """A value typed into a field, and the field left."""
        field = self.find(name)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(str(value), Keys.TAB)

    def press(self, key):
        ActionChains(self.driver).send_keys(key).perform()

    def wait(self, true, what, seconds=15):
        def look():
            try:
                return true()
            except (NoSuchElementException, StaleElementReferenceException):  # not there yet, or drawn again
                return False

        try:
            return wait_until(look, what, seconds, every=0.05)
        except AssertionError as late:
            raise AssertionError(f"{late}; the log says {self.text('log')[:400]!r}") from late

    def wait_text(self, name, text, seconds=15):
        return wait_until(lambda: text in self.text(name), f"#{name} says {text}", seconds, every=0.05)

    def shot(self, name, height=None):
        """Keeps a picture of the page for people to look at: all of it, or its first HEIGHT pixels."""
        height = height or self.driver.execute_script("return document.documentElement.scrollHeight")
        width = self.driver.execute_script("return innerWidth")
        self.size(width, height)
        self.driver.execute_script("scrollTo(0, 0)")
        self.keep(name)
        self.size(width)

    def shot_of(self, name, element):
        """Keeps a picture of one element."""
        self.keep(name, self.find(element).screenshot_as_png)

    def keep(self, name, picture=None):
        """Keeps a picture of what the window shows, or the given one. It must show something."""
        picture = picture or self.driver.get_screenshot_as_png()
        assert not is_blank(picture), f"the picture {name} is blank"
        (SHOTS / f"{self.shots}{name}.png").write_bytes(picture)

    def overflows(self):
        """By how many pixels the page is wider than the window. A phone makes a page that is too wide smaller, so its innerWidth grows."""
        wide = self.driver.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
        return max(wide) - (self.width or wide[0])

    def too_small(self):
        """What is to be hit and is less than 24 px high or wide."""
        return self.driver.execute_script(TOO_SMALL)

    def ground(self):
        return self.driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    def text_size(self):
        return self.driver.execute_script("return parseFloat(getComputedStyle(document.body).fontSize)")

    def low_contrast(self, drawings=False):
        """Texts that are hard to see; in DRAWINGS only where no shape lies behind them."""
        return self.driver.execute_script(LOW_CONTRAST, drawings)

    def unnamed(self):
        """What a screen reader would meet without a name."""
        self.driver.execute_cdp_cmd("Accessibility.enable", {})
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [
            node["role"]["value"]
            for node in nodes
            if not node.get("ignored")
            and node.get("role", {}).get("value") in ROLES
            and not node.get("name", {}).get("value", "").strip()
        ]

    def complaints(self):
        """What the browser has written on its console: errors, refused loads, broken policies."""
        return [
            entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
        ]
