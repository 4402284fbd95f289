"""Alignments on a page: what is embedded in it, and what a browser draws."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest
from colors import contrast
from hypothesis import given, settings
from hypothesis import strategies as st
from shown import FILES, HOUSE, embedded, pairs, run, write_files

from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.alignment.show import ShownPair, page

HOSTILE = [
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "<!--",
]


@given(st.lists(pairs(tokens=st.text(st.characters(exclude_categories=()), max_size=20)), max_size=4))
@settings(max_examples=25)
def test_the_data_of_a_page_are_the_pairs(several):
    text = page(several)
    text.encode()
    data = embedded(text)
    for side in ("source", "target"):
        words = [[re.sub("[\ud800-\udfff]", "\ufffd", word) for word in getattr(pair, side)] for pair in several]
        assert [pair[side] for pair in data["pairs"]] == words
    for pair, given_pair in zip(data["pairs"], several, strict=True):
        assert [link[:2] for link in pair["links"]] == [list(link) for link in given_pair.drawn()]


def test_words_are_data_only():
    text = page([ShownPair([*HOSTILE, "{{script}}", "\u2028"], ["\ud800"], [])], title="<b>&\"'\x00")
    assert text.lower().count("<script") == 2
    assert "<img" not in text
    assert "<b>" not in text
    assert embedded(text)["pairs"][0]["source"][:3] == HOSTILE
    assert "{{script}}" in embedded(text)["pairs"][0]["source"]


def test_a_page_needs_no_network():
    text = page([HOUSE])
    assert "default-src 'none'" in text
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"<(link|img|iframe)\b|@import|url\(", text)


def test_colors_have_contrast():
    style = (resources.files("maxmargin.tasks.alignment.show") / "templates" / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r"\{([^{}]*--paper: [^{}]*)\}", style)
    themes = [dict(re.findall(r"--(\w+): (#\w+);", block)) for block in blocks]
    assert len(themes) == 4  # light, dark by preference, dark by choice, print
    assert themes[1] == themes[2]
    for theme in themes:
        for front in ("ink", "soft", "link", "sure", "possible", "wrong", "missed"):
            for back in ("card", "paper", "band"):
                assert contrast(theme[front], theme[back]) >= 4.5, (front, back, theme)
        assert contrast(theme["open"], theme["card"]) >= 3  # a mark, not text


# --- the page in a browser ---

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium, for example apt-get install chromium")


class Elements(HTMLParser):
    """The start tags of a document."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def of_class(self, name):
        return [found for _, found in self.tags if name in (found.get("class") or "").split()]


def browse(folder, text, *extra, width=1300, height=4000, script=None):
    """What a browser makes of a page, as elements; fails where it writes anything to its console."""
    if script is not None:
        text = re.sub("<meta http-equiv[^>]*>", "", text).replace("</body>", f"<script>{script}</script></body>")
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},{height}",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            *(extra or ("--dump-dom",)),
            file.as_uri(),
        ],
        capture_output=True,
        timeout=600,
        check=True,
    )
    errors = done.stderr.decode(errors="replace")
    assert "CONSOLE" not in errors, errors
    return done.stdout.decode()


def drawn_in(document, view):
    """Kind by (sentence, source, target), of the marks in matrices or of the curves."""
    links = [
        found
        for found in Elements(document).of_class("link")
        if "data-sentence" in found and ("mark" in found["class"].split()) == (view == "matrix")
    ]
    found = {
        (int(link["data-sentence"]), int(link["data-source"]), int(link["data-target"])): link["data-kind"]
        for link in links
    }
    assert len(found) == len(links), "a link is drawn twice"
    return found


def many(n=12, *, seed=0, gold=True, confidence=True):
    rng = np.random.default_rng(seed)
    several = []
    for k in range(n):
        source, target = rng.integers(1, 12, size=2)
        grids = rng.random((3, source, target))
        links = np.argwhere(grids[0] < 0.2)
        several.append(
            ShownPair(
                [f"s{i}" for i in range(source)],
                [f"t{j}" for j in range(target)],
                links,
                rng.random(len(links)) if confidence else None,
                Reference.of(np.argwhere(grids[1] < 0.1), np.argwhere(grids[2] < 0.1)) if gold else None,
                k + 1,
            )
        )
    return several


def expected(several, *, hidden=()):
    return {
        (pair.number, *link): kind for pair in several for link, (kind, _) in pair.drawn().items() if kind not in hidden
    }


@in_a_browser
@pytest.mark.parametrize("gold", [False, True])
def test_the_links_drawn_are_the_links_given(tmp_path, gold):
    several = many(gold=gold)
    document = browse(tmp_path, page(several))
    assert drawn_in(document, "matrix") == expected(several)
    assert drawn_in(document, "curves") == expected(several, hidden=("open",))
    rates = re.findall(r"AER (\d+\.\d)%", document)
    overall, each = (float(rates[0]), sorted(map(float, rates[1:]))) if gold else (None, [])
    if gold:
        # JavaScript and Python round halves differently.
        assert each == pytest.approx(sorted(100 * pair.error_rate() for pair in several), abs=0.051)
        kinds = list(expected(several).values())
        right = 2 * kinds.count("sure") + kinds.count("possible")
        assert overall == pytest.approx(
            100 - 100 * right / (right + kinds.count("wrong") + kinds.count("missed")), abs=0.051
        )


@in_a_browser
def test_hostile_words_stay_words(tmp_path):
    odd = ShownPair([*HOSTILE, "", "{{data}}"], ["&lt;", "\ud800", "\u202ex", "w" * 300], [[0, 0], [1, 1], [4, 3]])
    document = browse(tmp_path, page([odd], title="safe"))
    assert "<title>safe</title>" in document
    body = document[: document.index('<script type="application/json"')]
    assert "<img" not in body
    assert "<script" not in body
    assert drawn_in(document, "matrix") == expected([odd])


@in_a_browser
def test_odd_pairs_are_drawn(tmp_path):
    several = [
        ShownPair([], ["b"], [], number=1),
        ShownPair([], [], [], number=2, reference=Reference.of([])),
        ShownPair(["a"], ["b"], [], number=3),
        ShownPair(["בית", "לבן"], ["white", "house"], [[0, 1], [1, 0]], number=4),
        ShownPair([f"s{i}" for i in range(80)], [f"t{i}" for i in range(90)], [[i, i] for i in range(80)], number=5),
    ]
    document = browse(tmp_path, page(several), width=500, height=9000)
    assert drawn_in(document, "matrix") == expected(several)
    assert drawn_in(document, "curves") == expected(several)
    assert "There are no sentence pairs." in browse(tmp_path, page([]))


@in_a_browser
def test_the_slider_hides_links_and_counts_again(tmp_path):
    several = many(6)
    move = """
        const slider = document.getElementById("threshold");
        slider.value = "0.5";
        slider.dispatchEvent(new Event("input"));
    """
    document = browse(tmp_path, page(several), script=move)
    kept = []
    for pair in several:
        chosen = np.round(pair.confidence, 4) >= 0.5
        kept.append(ShownPair(pair.source, pair.target, pair.links[chosen], None, pair.reference, pair.number))
    assert drawn_in(document, "matrix") == expected(kept)
    rates = [float(rate) for rate in re.findall(r"AER (\d+\.\d)%", document)[1:]]
    assert rates == pytest.approx([100 * pair.error_rate() for pair in kept], abs=0.051)


@in_a_browser
def test_order_search_and_keys(tmp_path):
    several = many(6)
    worst = browse(
        tmp_path,
        page(several),
        script="""
            const order = document.getElementById("order");
            order.value = "worst";
            order.dispatchEvent(new Event("change"));
            for (const key of "jjk") document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        """,
    )
    articles = [found for tag, found in Elements(worst).tags if tag == "article"]
    ranked = sorted(several, key=lambda pair: (-pair.error_rate(), pair.number))
    assert [found["id"] for found in articles] == [f"sentence-{pair.number}" for pair in ranked]
    assert [found.get("aria-current") for found in articles] == ["true", *[None] * 5]

    several[3] = ShownPair(["Needle"], ["aiguille"], [[0, 0]], number=4)
    found = browse(
        tmp_path,
        page(several),
        script="""
            const search = document.getElementById("search");
            search.value = "needle";
            search.dispatchEvent(new Event("input"));
        """,
    )
    assert [found["id"] for tag, found in Elements(found).tags if tag == "article"] == ["sentence-4"]
    assert "1 of 6 sentence pairs" in found


@in_a_browser
def test_a_word_lights_up_its_links(tmp_path):
    document = browse(
        tmp_path,
        page([HOUSE]),
        script="""
            const word = document.querySelector(".curves [data-source-word='2'] text");
            word.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 5, clientY: 5 }));
        """,
    )
    lit = [found for found in Elements(document).of_class("lit") if "data-kind" in found]
    assert {(found["data-source"], found["data-target"]) for found in lit} == {("2", "1"), ("2", "2")}
    assert "house – maison: right, possible" in document


@in_a_browser
def test_pairs_out_of_sight_are_not_drawn(tmp_path):
    several = [ShownPair(["a"], ["b"], [[0, 0]], number=k + 1) for k in range(2000)]
    document = browse(tmp_path, page(several), height=900)
    drawn = drawn_in(document, "matrix")
    assert len(drawn) < 200
    assert {(number + 1, 0, 0) for number in range(10)} <= drawn.keys() <= expected(several).keys()
    assert sum(tag == "article" for tag, _ in Elements(document).tags) == 2000
    choose = 'document.querySelectorAll("nav button")[1499].click();'
    assert (1500, 0, 0) in drawn_in(browse(tmp_path, page(several), height=900, script=choose), "matrix")


@in_a_browser
@pytest.mark.parametrize("extra", [(), ("--force-dark-mode",)])
def test_a_picture_of_the_page(tmp_path, extra):
    file = tmp_path / "page.png"
    browse(tmp_path, page(many(3)), f"--screenshot={file}", *extra, width=900, height=700)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size > 5000


@in_a_browser
def test_the_page_of_the_command_shows_the_links_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    run(*FILES, "--gold", "gold", "--html", "out.html")
    document = browse(tmp_path, (tmp_path / "out.html").read_text(encoding="utf-8"), height=12000)
    lines = [line.split() for line in (tmp_path / "links").read_text().splitlines()]
    given_links = {(n, *map(int, link.split("-"))) for n, line in enumerate(lines, start=1) for link in line}
    for view in ("matrix", "curves"):
        found = {link for link, kind in drawn_in(document, view).items() if kind not in ("missed", "open")}
        assert found == given_links
