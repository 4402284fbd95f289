"""The built site, in Chromium: ``make docs-check`` builds it and names its folder by ``--site``.

Pages ask no other host for anything, fit on a telephone, and show their formulas.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

WIDTH = 390
"""Of a telephone, in the pixels of style sheets."""

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

CHECK = """<!doctype html><meta charset="utf-8"><body style="margin:0"><script>
const pages = PAGES, frames = 4, found = {};
async function look(frame) {
  for (let page = pages.pop(); page; page = pages.pop()) {
    await new Promise(done => { frame.onload = done; frame.src = page; });
    const inside = frame.contentWindow, root = inside.document.documentElement;
    if (inside.MathJax && inside.MathJax.startup) await inside.MathJax.startup.promise;
    const count = what => root.querySelectorAll(what).length;
    const boxes = [root, ...root.querySelectorAll("body, main, article, .bd-article-container")];
    const wide = [...root.querySelectorAll("article *")].filter(one => one.getBoundingClientRect().right > WIDTH);
    const scrolls = boxes.some(box => box.scrollWidth > box.clientWidth);
    found[page] = {
      scrolls, wide: scrolls ? wide.slice(0, 3).map(one => one.outerHTML.slice(0, 120)) : [],
      formulas: count(".math"), drawn: count(".math mjx-container"), failed: count("mjx-merror, [data-mjx-error]"),
    };
  }
}
const looking = [];
for (let i = 0; i < frames; i++) {
  const frame = document.body.appendChild(document.createElement("iframe"));
  Object.assign(frame.style, { width: "WIDTHpx", height: "700px", border: "0" });
  looking.push(look(frame));
}
Promise.all(looking).then(
  () => fetch("/found", { method: "POST", body: JSON.stringify(found) }),
  error => fetch("/found", { method: "POST", body: JSON.stringify({ error: String(error) }) }));
</script>"""


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    given = request.config.getoption("site")
    if given is None:
        pytest.skip("looks at a built site, which make docs-check gives it")
    return Path(given).resolve()


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, str]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.html")}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items() if not name.startswith("_static")}


class Sources(HTMLParser):
    """What the elements of a page load by themselves: scripts, styles, pictures, frames; not links to follow."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "link" and (given.get("rel") or "").split()[0] not in ("canonical", "next", "prev", "author"):
            self.found.append(given.get("href") or "")
        if tag not in ("a", "link"):
            self.found += [given[name] or "" for name in ("src", "data", "poster") if name in given]
            self.found += [one.split()[0] for one in (given.get("srcset") or "").split(",") if one.strip()]
        self.found += re.findall(r"url\(([^)]*)\)", given.get("style") or "")


def elsewhere(target: str) -> bool:
    """Whether a target is on another host."""
    return re.match(r"\s*[\"']?(https?:)?//", target) is not None


def test_no_page_loads_anything_from_another_host(folder: Path, pages: dict[str, str]) -> None:
    assert len(pages) > 100
    for name, text in pages.items():
        assert [target for target in Sources(text).found if elsewhere(target)] == [], name
    for path in folder.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"url\(([^)]*)\)|@import\s+([^;]*)", text)
        assert [one for pair in loaded for one in pair if elsewhere(one)] == [], path.name


def test_local_files_exist(folder: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        for target in Sources(text).found:
            plain = re.sub(r"[?#].*| .*", "", target)
            if plain and not plain.startswith("data:"):
                assert ((folder / name).parent / plain).exists(), f"{name}: {target}"


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site and the page that looks at its pages, and keeps what that page found."""

    check = ""
    found = ""
    done = threading.Event()

    def do_GET(self) -> None:
        if self.path != "/check":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(Quiet.check.encode())

    def do_POST(self) -> None:
        Quiet.found = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(204)
        self.end_headers()
        Quiet.done.set()

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def looks(folder: Path, pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What Chromium makes of every page on a telephone."""
    if BROWSER is None:
        pytest.skip("needs Chromium, for example apt-get install chromium")
    names = json.dumps([f"/{name}" for name in sorted(pages)])
    Quiet.check = CHECK.replace("WIDTH", str(WIDTH)).replace("PAGES", names)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    options += ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    options += [f"--user-data-dir={tmp_path_factory.mktemp('profile')}", "--window-size=1600,1500"]
    where = f"http://127.0.0.1:{server.server_port}/check"
    with subprocess.Popen([BROWSER, *options, where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            assert Quiet.done.wait(800), "Chromium has not looked at all pages after 800 seconds"
        finally:
            browser.terminate()
            server.shutdown()
            server.server_close()
    found = json.loads(Quiet.found)
    assert found.keys() == {f"/{name}" for name in pages}, found.get("error")
    return found


def test_pages_fit_on_a_telephone(looks: dict[str, dict]) -> None:
    assert {page: look["wide"] for page, look in looks.items() if look["scrolls"]} == {}


def test_formulas_are_drawn(looks: dict[str, dict]) -> None:
    assert sum(look["formulas"] for look in looks.values()) > 0
    for page, look in looks.items():
        assert look["drawn"] == look["formulas"], page
        assert look["failed"] == 0, page
