"""A real Chromium without a window, driven over a pipe by the DevTools protocol."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

DEADLINE_S = 60  # for anything that should happen soon; only a hang ever waits so long
POLL_S = 0.01
FLAGS = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-US",
]
KEYS = {  # name: (code, Windows key code, text that it types)
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "Space": ("Space", 32, " "),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
}


def find():
    """The path of a Chromium that starts, or None: Ubuntu's package only names a snap."""
    for name in ("chromium", "google-chrome", "chromium-browser"):
        path = shutil.which(name)
        if path is None:
            continue
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if told.returncode == 0 and "snap" not in told.stdout + told.stderr:
            return path
    return None


class Browser:
    """One Chromium; new_page() opens a page that shares nothing with the others."""

    def __init__(self, path, profile):
        commands, self.commands = self._pipe()
        self.events, events = self._pipe()

        def give_pipes():  # Chromium reads commands from 3 and writes events to 4
            os.dup2(commands, 3)
            os.dup2(events, 4)

        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [path, *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=give_pipes,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(events)
        self.unread, self.last_id, self.answers, self.pages = b"", 0, {}, {}

    @staticmethod
    def _pipe():
        """Both ends at numbers that do not collide with 3 and 4."""
        ends = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
        for end in ends:
            os.close(end)
        return high

    def _read(self):
        """Takes in what has arrived, waiting for something to."""
        assert select.select([self.events], [], [], DEADLINE_S)[0], "Chromium says nothing"
        data = os.read(self.events, 1 << 20)
        assert data, "Chromium has ended"
        *messages, self.unread = (self.unread + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].on_event(message["method"], message["params"])

    def call(self, method, session=None, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]
        while message["id"] not in self.answers:
            self._read()
        answer = self.answers.pop(message["id"])
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def new_page(self, width=1280, height=900):
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, session["sessionId"], context)
        self.pages[page.session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        return page

    def close(self):
        try:
            self.call("Browser.close")
        finally:
            os.close(self.commands)
            os.close(self.events)
            try:
                self.process.wait(timeout=DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Page:
    """What a person does with a page, and what the page did meanwhile."""

    def __init__(self, browser, session, context):
        self.browser, self.session, self.context = browser, session, context
        self.complaints = []  # console errors, exceptions, violations of the policy
        self.requests = []  # addresses

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def on_event(self, method, event):
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(event["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning"):
            self.complaints.append(event["args"])
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(event["entry"])

    def close(self):
        del self.browser.pages[self.session]
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def media(self, **features):
        """media(prefers_color_scheme="dark")"""
        listed = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.call("Emulation.setEmulatedMedia", features=listed)

    def run(self, script):
        """The value of an expression, or of the promise that it is."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, f"{script}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def until(self, script):
        """Waits for an expression to be true."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.run(f"Boolean({script})"):
            assert time.monotonic() < deadline, f"never true: {script}"
            time.sleep(POLL_S)

    def has(self, selector):
        """Waits for an element that is shown."""
        self.until(f"document.querySelector({json.dumps(selector)})?.checkVisibility()")

    def text(self, selector):
        self.has(selector)
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector):
        return self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)"
        )

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.until(
            "document.readyState === 'complete' && document.querySelector('[role=tab]')?.innerText"
        )

    def click(self, selector):
        """With the mouse, where a person would: whatever covers the element gets the click."""
        self.has(selector)
        box = self.run(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)});"
            "element.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const box = element.getBoundingClientRect();"
            "const x = box.x + box.width / 2, y = box.y + box.height / 2;"
            "const top = document.elementFromPoint(x, y);"
            "return {x, y, hit: element === top || element.contains(top)}; })()"
        )
        assert box["hit"], f"{selector} is covered"
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box["x"],
                y=box["y"],
                button="left",
                clickCount=1,
            )

    def press(self, key):
        code, number, text = KEYS[key]
        name = " " if key == "Space" else key
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=code,
                windowsVirtualKeyCode=number,
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    def fill(self, selector, words):
        """Replaces what a text field holds, as by select all and typing."""
        self.click(selector)
        self.run("document.activeElement.select()")
        self.call("Input.insertText", text=words)

    def choose(self, selector, value):
        """An option of a select; its popup is no part of a page without a window."""
        self.has(selector)
        self.run(
            f"(() => {{ const list = document.querySelector({json.dumps(selector)});"
            f"list.value = {json.dumps(str(value))};"
            "list.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def give_files(self, selector, *paths):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path) for path in paths], nodeId=node)

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        picture = self.call(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture["data"]))
