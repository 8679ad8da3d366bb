"""A headless Chromium held by two pipes: pages opened, looked into, clicked and pictured.

Its DevTools protocol as JSON between zero bytes, so that nothing but the browser is needed.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE_S = 60.0


def find() -> str | None:
    """The browser to use: `$JAXSPV_BROWSER`, or the first that is on the path."""
    return os.environ.get("JAXSPV_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page; `errors` has what its console complained of since `open`."""

    def __init__(self, profile: str) -> None:
        command, (their_in, self._out), (self._in, their_out) = find(), os.pipe(), os.pipe()
        if command is None:
            raise FileNotFoundError(f"none of {', '.join(NAMES)} is installed.")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += [
            "--hide-scrollbars",
            "--no-first-run",
            "--no-proxy-server",
            f"--user-data-dir={profile}",
        ]

        # The browser reads its descriptor 3 and writes 4; a shell puts them there.
        shell = f'exec "$@" 3<&{their_in} 4>&{their_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", command, *options, "about:blank"],
            pass_fds=(their_in, their_out),
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
        )
        os.close(their_in), os.close(their_out)
        self._rest, self._number, self._session, self.errors, self._loaded = b"", 0, None, [], 0
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in pages if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.call(f"{part}.enable")
        # Newer ones give a page without a window no focus, and copy from none without it.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            self._process.kill()
        self._process.wait(PATIENCE_S)
        os.close(self._out), os.close(self._in)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command of the protocol; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError(f"the browser was silent for {PATIENCE_S:g} s.")
            more = os.read(self._in, 1 << 20)
            if not more:
                raise RuntimeError("the browser ended.")
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, params: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded += 1
        elif event == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(str(params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def look(self, width: int, height: int = 1000, *, dark: bool = False, scale: int = 1) -> None:
        """A screen of that many pixels, for a reader who likes dark or light pages."""
        screen = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> None:
        """Opens a page and waits until it is loaded."""
        self.errors, before = [], self._loaded
        if "errorText" in (found := self.call("Page.navigate", url=address)):
            raise RuntimeError(f"{address}: {found['errorText']}")
        while self._loaded == before:
            self._next()

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript, as if the reader had clicked.

        Promises are waited for.
        """
        how = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        found = self.call("Runtime.evaluate", expression=expression, **how)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression: str) -> Any:
        """The first value of the expression that is true."""
        until = time.monotonic() + PATIENCE_S
        while not (value := self.ask(expression)):
            if time.monotonic() > until:
                raise TimeoutError(f"{expression} stayed false for {PATIENCE_S:g} s.")
            time.sleep(0.05)
        return value

    def picture(self) -> str:
        """The screen as PNG in base64."""
        return self.call("Page.captureScreenshot", format="png")["data"]
