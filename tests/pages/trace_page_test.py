#!/usr/bin/python3
"""The page of a trace in a real browser: what it shows, under the pointer, zoomed, and that names of models are never
HTML.

usage: page_test.py TROUPE [--screenshots FOLDER] [PAGE…]      with pages: only takes their pictures, light and dark

Ends with status 77, saying why, where there is no Chromium (Debian: chromium-headless-shell) or no python3-websocket.
"""
import argparse
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Browser:
    """Chromium by the DevTools protocol: https://chromedevtools.github.io/devtools-protocol."""

    def __init__(self, command, folder):
        import websocket
        self.process = subprocess.Popen(
            [command, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
             "--remote-allow-origins=*", f"--user-data-dir={folder}", "--window-size=1400,900", "about:blank"],
             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = pathlib.Path(folder) / "DevToolsActivePort"
        for _ in range(600):
            if port_file.exists() and len(port_file.read_text().split()) == 2:
                break
            time.sleep(0.1)
        port, path = port_file.read_text().split()
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=120)
        self.last, self.session, self.events = 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def open(self, page):
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(page).resolve().as_uri())
        for _ in range(1200):
            if self.run("document.readyState === 'complete'"):
                break
            time.sleep(0.05)
        self.frame()

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def frame(self):
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind, at, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=at["x"], y=at["y"], **more)
        self.frame()

    def picture(self, file):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(file).write_bytes(base64.b64decode(data))

    def complaints(self):
        """What the page has said on the console, and what it has asked the network for."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            if method in ("Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(params)
            if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
                found.append(params["request"]["url"])
        return found

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()


def x_event(name, lane, begin, length, category="node", **args):
    return {"ph": "X", "pid": 0, "tid": lane, "name": name, "cat": category, "ts": begin, "dur": length, "args": args}


def named_lane(lane, name):
    return {"ph": "M", "pid": 0, "tid": lane, "name": "thread_name", "args": {"name": name, "lane": name}}


def make_page(troupe, folder, name, events):
    file, page = folder / f"{name}.json", folder / f"{name}.html"
    file.write_text(json.dumps({"traceEvents": events}))
    subprocess.run([troupe, "trace", file, "--html", page], check=True, stderr=subprocess.DEVNULL)
    return page


def small_events(slow=1):
    return [named_lane(0, "cpu"), named_lane(1, "vulkan:0"), x_event("conv", 0, 0, 100, op="Conv", kernel="gemm"),
            x_event("relu", 0, 150, 50 * slow, op="Relu"), x_event("add", 1, 400, 200, op="Add"),
            x_event("upload x", 1, 300, 50, "upload", bytes=4096),
            {"ph": "C", "pid": 0, "tid": 0, "name": "cpu memory", "ts": 0, "args": {"weights": 1000, "values": 0}},
            {"ph": "C", "pid": 0, "tid": 0, "name": "cpu memory", "ts": 150, "args": {"weights": 1000, "values": 3000}}]


def hover(browser, bar, chart=0):
    at = browser.run(f"tracePage.charts[{chart}].positionOf({bar})")
    assert at, f"bar {bar} is out of sight"
    browser.mouse("mouseMoved", at)
    return browser.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")


def test_small(browser, troupe, folder):
    browser.open(make_page(troupe, folder, "small", small_events()))
    assert browser.run("tracePage.charts.map(c => [c.lanes.length, c.trace.count])") == [[2, 4]]
    text = hover(browser, 0)
    assert "conv" in text and "Conv · gemm" in text and "100 µs: from 0 ns to 100 µs" in text and "cpu" in text, text
    assert "4.0 KiB" in hover(browser, 3)
    browser.mouse("mouseMoved", {"x": 5, "y": 5})
    assert browser.run("document.getElementById('tip').hidden")
    assert browser.run("[...document.querySelectorAll('h2')].map(h => h.textContent)") == ["Devices", "Longest nodes"]
    rows = browser.run("[...document.querySelectorAll('table')].map(t => [...t.tBodies[0].rows].map(r => "
                       "r.cells[0].textContent))")
    assert rows == [["cpu", "vulkan:0"], ["add", "conv", "relu"]], rows
    browser.run("search.value = 'conv', search.dispatchEvent(new Event('input'))")
    assert browser.run("found.textContent") == "1 found"


def test_zoom(browser, troupe, folder):
    browser.open(make_page(troupe, folder, "zoom", small_events()))
    shown = "tracePage.charts[0].x.domain()"
    width = lambda: -(lambda d: d[0] - d[1])(browser.run(shown))
    all_of_it = width()
    at = browser.run("tracePage.charts[0].positionOf(2)")
    browser.mouse("mouseWheel", at, deltaX=0, deltaY=-400)
    assert width() < all_of_it * 0.8, "the wheel does not zoom"
    left = browser.run(shown)[0]
    browser.mouse("mousePressed", at, button="left", clickCount=1)
    browser.mouse("mouseMoved", {"x": at["x"] + 100, "y": at["y"]}, button="left", buttons=1)
    browser.mouse("mouseReleased", {"x": at["x"] + 100, "y": at["y"]}, button="left")
    assert browser.run(shown)[0] < left, "dragging does not move"
    assert "add" in hover(browser, 2)
    browser.run("document.getElementById('all').click()")
    assert width() == all_of_it
    browser.run("document.querySelectorAll('tr.jump')[2].click()")  # the shortest node
    assert width() < all_of_it and "relu" in hover(browser, 1)


def test_hostile_names(browser, troupe, folder):
    names = ["<img src=x onerror=hacked=1>", "</script><script>hacked=1</script>", "<!--<script>", "a\u2028b'\"&amp;"]
    events = [named_lane(i, name) for i, name in enumerate(names)]
    events += [x_event(name, i, 100 * i, 90, op=name, kernel=name) for i, name in enumerate(names)]
    page = make_page(troupe, folder, "hostile", events)
    browser.open(page)
    for i, name in enumerate(names):
        assert name.split("\u2028")[0] in hover(browser, i), name
    browser.open(subprocess_diff(troupe, folder, "hostile", "hostile"))
    assert browser.run("[typeof hacked, document.images.length, document.scripts.length]") == ["undefined", 0, 3]


def subprocess_diff(troupe, folder, a, b):
    page = folder / "diff.html"
    subprocess.run([troupe, "trace", "--diff", folder / f"{a}.json", folder / f"{b}.json", "--html", page], check=True,
                   stderr=subprocess.DEVNULL)
    return page


def test_diff(browser, troupe, folder):
    make_page(troupe, folder, "before", small_events())
    make_page(troupe, folder, "after", small_events(slow=4))
    browser.open(subprocess_diff(troupe, folder, "before", "after"))
    assert browser.run("tracePage.charts.length") == 2
    headings = browser.run("[...document.querySelectorAll('#tables h2')].map(h => h.textContent)")
    assert headings[:2] == ["Devices", "Slower (1)"], headings
    row = browser.run("document.querySelectorAll('#tables table')[1].tBodies[0].rows[0].innerText")
    assert "relu" in row and "+0.150 ms" in row and "4 ×" in row, row
    browser.mouse("mouseWheel", browser.run("tracePage.charts[0].positionOf(0)"), deltaX=0, deltaY=-400)
    zooms = browser.run("tracePage.charts.map(c => c.transform.k)")
    assert zooms[0] > 1 and zooms[0] == zooms[1], zooms


def test_many_bars(browser, troupe, folder):
    events = [named_lane(i, f"device {i}") for i in range(4)]
    events += [x_event(f"node {i}", i % 4, 10 * (i // 4), 8, op="Add") for i in range(100000)]
    events += [named_lane(4 + i, f"idle {i}") for i in range(30)] + [x_event("idle", 4 + i, 0, 1) for i in range(30)]
    browser.open(make_page(troupe, folder, "many", events))
    hidden = browser.run("tracePage.charts[0].width - tracePage.charts[0].box.clientWidth")
    assert hidden == 0, f"the scroll bar hides {hidden} pixels of the chart"
    assert browser.run("tracePage.charts[0].trace.count") == 100030
    painted = browser.run("""(() => {
      const kept = CanvasRenderingContext2D.prototype.fillRect;
      let calls = 0;
      CanvasRenderingContext2D.prototype.fillRect = function(...at) { ++calls; return kept.apply(this, at); };
      paintChart(tracePage.charts[0]);
      CanvasRenderingContext2D.prototype.fillRect = kept;
      return calls; })()""")
    assert painted < 4 * 2 * 1400, f"{painted} rectangles for 1400 pixels"
    browser.run("tracePage.charts[0].show(77777)")
    browser.frame()
    assert "node 77777" in hover(browser, 77777)


def test_dark_colours(browser, troupe, folder):
    browser.open(make_page(troupe, folder, "dark", small_events()))
    pixel = ("(c => [...c.getContext('2d').getImageData(300, 300 > c.height ? c.height - 2 : 300, 1, 1).data])"
             "(document.querySelector('canvas'))")
    light = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.frame()
    dark = browser.run("getComputedStyle(document.body).backgroundColor")
    assert light != dark and sum(browser.run(pixel)[:3]) < 300
    browser.call("Emulation.setEmulatedMedia", features=[])


def take_pictures(browser, pages, folder):
    for page in pages:
        for scheme in ("light", "dark"):
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.open(page)
            browser.picture(pathlib.Path(folder) / f"{pathlib.Path(page).stem}.{scheme}.png")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("troupe")
    arguments.add_argument("pages", nargs="*")
    arguments.add_argument("--screenshots", default=".")
    given = arguments.parse_args()
    command = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not command:
        print(f"skipped: there is none of {', '.join(BROWSERS)} (Debian: chromium-headless-shell)")
        return SKIPPED
    try:
        import websocket  # noqa: F401
    except ImportError:
        print("skipped: Python has no module websocket (Debian: python3-websocket)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(command, profile)
        try:
            if given.pages:
                take_pictures(browser, given.pages, given.screenshots)
                return 0
            for test in (test_small, test_zoom, test_hostile_names, test_diff, test_many_bars, test_dark_colours):
                test(browser, given.troupe, pathlib.Path(made))
                assert not browser.complaints(), (test.__name__, browser.complaints())
                print(f"{test.__name__[5:].replace('_', ' ')}: passed")
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
