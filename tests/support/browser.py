"""Headless Chromium, driven by its own DevTools protocol over a pipe: nothing else has to be installed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

SECONDS = 60
"""Within which the browser has to answer."""


def find() -> str | None:
    """Where Chromium is, if it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Left(RuntimeError):
    """The page went away while it was asked."""


class Browser:
    """One page at a time."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, answers = os.pipe(), os.pipe()
        ends = commands[0], answers[1]
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            [program, *flags, f"--user-data-dir={self.profile.name}", "about:blank"],
            preexec_fn=lambda: _as_3_and_4(*ends),
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in ends:
            os.close(end)
        self.commands, self.answers = os.fdopen(commands[1], "wb", 0), os.fdopen(answers[0], "rb", 0)
        self.waiting, self.count, self.session = b"", 0, ""
        self.console: list[str] = []
        """What the page complained of: errors of its scripts, and what its policy refused."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.commands.close()
        self.answers.close()
        self.profile.cleanup()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command, and return what it answers."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        self.commands.write(json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self.count:
            self._note(answer)
        if "navigated" in (error := answer.get("error", {}).get("message", "")):
            raise Left(error)
        if error:
            raise RuntimeError(f"{method}: {error}")
        return answer["result"]

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Show a file, once its scripts have run."""
        self.console.clear()
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.until(lambda: self.run("document.readyState === 'complete' && location.protocol === 'file:'"))
        self.settle()

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def settle(self) -> None:
        """Let the page draw."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")

    def follow(self, selector: str) -> None:
        """Click a link, which may leave the page before it answers."""
        with suppress(Left):
            self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def until(self, holds: Callable[[], Any]) -> None:
        """Wait, also where the page is being left for the next one."""

        def there() -> Any:
            with suppress(Left):
                return holds()

        deadline = time.monotonic() + SECONDS
        while not there():
            assert time.monotonic() < deadline, "the page did not get there"
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def count_of(self, selector: str) -> int:
        return int(self.run(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def centre(self, selector: str) -> tuple[float, float]:
        """Of an element, in the window, after scrolling to it."""
        box = self.run(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{ block: "center", behavior: "instant" }});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        return float(box[0]), float(box[1])

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """`kind` is Moved, Pressed, Released or Wheel."""
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)
        self.settle()

    def click(self, x: float, y: float) -> None:
        for kind in ("Pressed", "Released"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def key(self, key: str, text: str = "", shift: bool = False) -> None:
        more = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 * shift, **more)
            more = {}
        self.settle()

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self.waiting:
            if not select.select([self.answers], [], [], SECONDS)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.answers.fileno(), 1 << 16)
            if not more:
                raise RuntimeError("the browser ended")
            self.waiting += more
        message, self.waiting = self.waiting.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.console.append(json.dumps(event["params"]))


def _as_3_and_4(commands: int, answers: int) -> None:
    """In the child: where Chromium looks for the pipe. Through high numbers first, lest one overwrite the other."""
    high = os.dup2(commands, 100), os.dup2(answers, 101)
    os.dup2(high[0], 3)
    os.dup2(high[1], 4)
