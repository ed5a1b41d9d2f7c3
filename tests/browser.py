"""A page in headless Chromium, driven through its DevTools protocol over two pipes: no driver, no port, no package."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
# Chromium reads commands from descriptor 3 and answers on 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
PATIENCE = 60.0


def require_chromium():
    """Path of the browser; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None or os.name != "posix":
        pytest.skip(f"no Chromium on the path (looked for {', '.join(NAMES)})")
    return found


class Browser:
    """A browser with an empty profile. ``open`` shows a page; then ``evaluate``, ``press`` and ``screenshot`` it.

    ``requests`` holds the addresses that the last page asked for, its own first; ``complaints`` what it wrote to the
    console, its uncaught errors, and what the browser blocked.
    """

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        command = [require_chromium(), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(commands), str(answers), *command],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer, self._events, self._last, self._session = b"", [], 0, None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._profile.cleanup()

    def open(self, path, width=1280, height=900, dark=False):
        """Load a file and wait until it is there."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.emulate("", dark)
        self._events.clear()
        self._call("Page.navigate", url=Path(path).resolve().as_uri())
        if not self._named("Page.loadEventFired"):
            self._answer(lambda message: message.get("method") == "Page.loadEventFired")
        self._draw()

    def emulate(self, media="", dark=False):
        """``media="print"`` for paper; a dark screen, and no motion."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}],
        )
        self._draw()

    def _draw(self):
        """Wait for a frame: until then the browser may still answer for the last one."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def evaluate(self, script):
        """Value of an expression in the page; a promise is waited for."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key, code):
        """A key of the keyboard, such as ``("Tab", 9)`` or ``("Enter", 13)``."""
        parts = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self._call("Input.dispatchKeyEvent", type="keyDown", **parts, **({"text": "\r"} if key == "Enter" else {}))
        self._call("Input.dispatchKeyEvent", type="keyUp", **parts)

    def screenshot(self, path):
        """The page as PNG, also what lies below the window."""
        clip = {**self._call("Page.getLayoutMetrics")["cssContentSize"], "scale": 1}
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    @property
    def requests(self):
        return [event["params"]["request"]["url"] for event in self._named("Network.requestWillBeSent")]

    @property
    def complaints(self):
        names = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for name in names for event in self._named(name)]

    def _named(self, name):
        return [event for event in self._events if event.get("method") == name]

    def _call(self, method, **params):
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._answer(lambda message: message.get("id") == number)
        assert "result" in answer, f"{method}: {answer}"
        return answer["result"]

    def _answer(self, wanted):
        """The next message that is wanted; events on the way are kept."""
        end = time.monotonic() + PATIENCE
        while True:
            while b"\0" not in self._buffer:
                assert select.select([self._read], [], [], max(end - time.monotonic(), 0.0))[0], "the browser is silent"
                part = os.read(self._read, 1 << 20)
                assert part, "the browser ended"
                self._buffer += part
            text, self._buffer = self._buffer.split(b"\0", 1)
            message = json.loads(text)
            self._events.append(message)
            if wanted(message):
                return message
