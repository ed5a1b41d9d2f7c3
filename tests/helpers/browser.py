"""A page in headless Chromium, driven by selenium through the driver that is installed beside the browser."""

import json
import shutil
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

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
)


def require_chromium():
    """Paths of the browser and of its driver; the test is skipped where one of them is missing."""
    found, driver = next(filter(None, map(shutil.which, NAMES)), None), shutil.which("chromedriver")
    if found is None or driver is None or find_spec("selenium") is None:
        pytest.skip(f"pages need selenium, chromedriver and a browser ({', '.join(NAMES)}) on the path")
    return found, driver


class Browser:
    """A browser with an empty profile. ``open`` shows a page; then ``evaluate`` and ``press`` it."""

    def __enter__(self):
        from selenium.webdriver import Chrome
        from selenium.webdriver.chrome.service import Service

        chromium, driver = require_chromium()
        with ExitStack() as stack:
            profile = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            stack.enter_context(patch.dict("os.environ", no_proxy="localhost", NO_PROXY="localhost"))
            self._driver = Chrome(self._options(chromium, profile), Service(driver))
            stack.callback(self._driver.quit)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _options(self, chromium, profile):
        from selenium.webdriver import ChromeOptions

        options = ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        return options

    def open(self, path, width=1280, height=900, dark=False):
        """Load a file and wait until it is there."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.emulate("", dark)
        self._forget()
        self._driver.get(Path(path).resolve().as_uri())
        self._draw()

    def emulate(self, media="", dark=False):
        """``media="print"`` for paper; a dark screen, and no motion."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self._call("Emulation.setEmulatedMedia", media=media, features=[scheme, still])
        self._draw()

    def evaluate(self, script):
        """Value of an expression in the page; a promise is waited for."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key):
        """A key of the keyboard: TAB, ENTER and the other names of selenium's ``Keys``."""
        from selenium.webdriver import ActionChains, Keys

        ActionChains(self._driver).send_keys(getattr(Keys, key)).perform()

    @property
    def requests(self):
        """Addresses that the last page has asked for since this was read last, its own first."""
        events = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        asked = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [event["request"]["url"] for event in asked]

    @property
    def complaints(self):
        """What the last page wrote to the console, its uncaught errors, and what the browser blocked."""
        return self._driver.get_log("browser")

    def _forget(self):
        for log in ("performance", "browser"):
            self._driver.get_log(log)

    def _draw(self):
        """Wait for a frame: until then the browser may still answer for the last one."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def _call(self, method, **params):
        return self._driver.execute_cdp_cmd(method, params)
