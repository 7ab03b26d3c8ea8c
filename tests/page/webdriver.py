"""A small client of the WebDriver protocol (https://www.w3.org/TR/webdriver2/) for a headless Chromium."""
import base64
import http.client
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the standard's name of an element's reference
START_S = 60
WAIT_S = 20

# The standard's codes of keys that aren't characters.
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Shift": "\ue008", "End": "\ue010", "Home": "\ue011",
        "F2": "\ue032", "Delete": "\ue017", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


def missing_programs():
    """The browser's programs that this machine lacks."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


class Browser:
    """One browser with a profile of its own, until close()."""

    def __init__(self):
        self.profile = tempfile.mkdtemp()
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.session = None
        try:
            self.port = self._announced_port()
            options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                                f"--user-data-dir={self.profile}", "--window-size=1400,900"]}
            answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
            self.session = f"/session/{answer['sessionId']}"
        except BaseException:
            self.close()
            raise

    def close(self):
        try:
            if self.session:
                self._send("DELETE", self.session)
        finally:
            self.driver.kill()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, url):
        self.post("/url", {"url": url})

    def run(self, script, *arguments):
        """The value that the body of a function returns in the page."""
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def element(self, css):
        return self.post("/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                return self.post(f"/element/{self.element(css)}/click", {})
            except RuntimeError as error:  # what moves while the page changes is hit a moment later
                if "click intercepted" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def text(self, css):
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", css)

    def count(self, css):
        return self.run("return document.querySelectorAll(arguments[0]).length", css)

    def point_at(self, css):
        """Moves the mouse over an element."""
        move = {"type": "pointerMove", "duration": 0, "origin": {ELEMENT: self.element(css)}, "x": 0, "y": 0}
        self._act("pointer", [move])

    def press(self, *keys):
        """Presses keys one after the other, wherever the focus is: names of KEYS or characters."""
        for key in keys:
            code = KEYS.get(key, key)
            self._act("key", [{"type": "keyDown", "value": code}, {"type": "keyUp", "value": code}])

    def write(self, text):
        self.press(*text)

    def until(self, script, *arguments, within=WAIT_S):
        """The value of a function's body as soon as it is true; AssertionError if it never is."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            value = self.run(script, *arguments)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"not true within {within} s: {script} {arguments}")

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def grant_clipboard(self, url):
        """Lets the pages of this origin read and write the clipboard."""
        self.devtools("Browser.grantPermissions", origin=url,
                      permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    def set_size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, **features):
        """Media features, `color_scheme="dark"`: what the visitor's system prefers."""
        listed = [{"name": "prefers-" + name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=listed)

    def console(self):
        """What the page and the browser have written to the console since the last call."""
        return self.post("/se/log", {"type": "browser"})

    def screenshot(self, path):
        Path(path).write_bytes(base64.b64decode(self._send("GET", self.session + "/screenshot")))

    def post(self, path, body):
        return self._send("POST", self.session + path, body)

    def _act(self, kind, actions):
        source = {"type": kind, "id": kind, "actions": actions}
        if kind == "pointer":
            source["parameters"] = {"pointerType": "mouse"}
        self.post("/actions", {"actions": [source]})

    def _announced_port(self):
        for line in self.driver.stdout:
            if b"started successfully on port" in line:
                return int(line.split()[-1].rstrip(b"."))
        raise RuntimeError("chromedriver ended without starting")

    def _send(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{value['error']}: {value['message']}")
        return value
