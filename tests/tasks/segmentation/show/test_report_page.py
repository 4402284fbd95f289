"""The report: what is in it, and what a browser makes of it."""

from __future__ import annotations

import base64
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest
from colors import contrast
from commands import failed, run
from PIL import Image

import maxmargin as mm
from maxmargin.tasks.segmentation import evaluate, evaluate_masks, write_mask
from maxmargin.tasks.segmentation.drawings import PICTURE_CLASSES, drawn_pictures, drawn_scans
from maxmargin.tasks.segmentation.files.report import report_on_arrays
from maxmargin.tasks.segmentation.metrics.scores import joined
from maxmargin.tasks.segmentation.show import default_colors, image_case, overlay, page, scan_case
from maxmargin.tasks.segmentation.show.overlay import boundaries, shown_image
from maxmargin.tasks.segmentation.show.pictures import indexed_png, raster, side_view

HOSTILE = "</h2><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
NAMES = PICTURE_CLASSES[:2]


def wrong_labels(labels, rows):
    """Labels that are wrong in the first rows."""
    found = labels.copy()
    found[:rows] = 1 - found[:rows]
    return found


@pytest.fixture(scope="module")
def pictures():
    images, gold = drawn_pictures(4, size=(48, 64))
    predicted = [wrong_labels(labels, rows) for labels, rows in zip(gold, (3, 12, 0, 6), strict=True)]
    return ["img1", "img10", "img2", "other"], images, gold, predicted


def report(pictures, **settings):
    return report_on_arrays(*pictures, NAMES, **settings)


class Elements(HTMLParser):
    """The start tags of a document, and the text in it."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def articles(self):
        return [found["data-name"] for tag, found in self.tags if tag == "article"]


def layers(text):
    """The PNG files in the frames of each article, as arrays of RGBA."""
    found = []
    for article in re.findall(r"<article.*?</article>", text, re.DOTALL):
        uris = re.findall(r'<img src="data:image/png;base64,([^"]+)"', article)
        found.append([np.array(Image.open(io.BytesIO(base64.b64decode(uri))).convert("RGBA")) for uri in uris])
    return found


# --- pictures ---


def test_pictures_are_the_labels(pictures):
    names, _, gold, predicted = pictures
    text = report(pictures)
    order = [1, 3, 0, 2]
    assert Elements(text).articles() == [names[at] for at in order]  # the worst first
    colors = default_colors(2)
    for at, (first, second, errors) in zip(order, layers(text), strict=True):
        np.testing.assert_array_equal(first[..., :3], colors[gold[at]])
        np.testing.assert_array_equal(second[..., :3], colors[predicted[at]])
        np.testing.assert_array_equal(errors[..., 0] == 255, gold[at] != predicted[at])


def test_figures_are_those_of_evaluate(pictures):
    names, _, gold, predicted = pictures
    text = Elements(report(pictures, facts={"relative_gap": 0.000123, "classifier": "<b>"})).text
    scores = evaluate(gold, predicted, NAMES, images=names)
    assert f"{100 * scores.error:.2f}%" in text
    assert f"{100 * scores.mean_iou:.1f}%" in text
    assert f"{100 * scores.boundary_f:.1f}%" in text
    for error in scores.image_errors:
        assert f"{100 * error:.2f}% wrong" in text
    assert "0.000123" in text
    assert "<b>" in text
    parts = [evaluate([a], [b], NAMES, images=[c]) for a, b, c in zip(gold, predicted, names, strict=True)]
    np.testing.assert_array_equal(joined(parts).counts, scores.counts)
    with pytest.raises(ValueError, match="different classes"):
        joined([parts[0], evaluate(gold, predicted, ("a", "b"))])


def test_names_are_text_only(pictures):
    _, *rest = pictures
    names = [HOSTILE, "{{script}}", "\ud800\x1b", "a"]
    text = report_on_arrays(names, *rest, NAMES, title=HOSTILE)
    text.encode()
    assert text.lower().count("<script") == 1
    assert 'onerror="' not in text
    assert HOSTILE in Elements(text).articles()
    assert "{{script}}" in Elements(text).articles()


def test_a_page_needs_no_network(pictures):
    text = report(pictures)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" in text
    assert not re.search(r"https?://|<(link|iframe)\b|@import", text)
    assert set(re.findall(r"url\((.{10})", text)) == {"data:image"}
    assert all(found["src"].startswith("data:image/png") for tag, found in Elements(text).tags if tag == "img")


def test_only_the_worst_have_cards(pictures):
    text = report(pictures, limit=2)
    assert Elements(text).articles() == ["img10", "other"]
    assert "4 images" in text
    assert "the 2 worst are shown" in text


def test_sixty_large_photographs_stay_small():
    rng = np.random.default_rng(0)
    image = np.kron(rng.integers(0, 256, (60, 80, 3)), np.ones((16, 16, 1))).astype(np.uint8)
    labels = np.kron(rng.random((30, 40)) < 0.5, np.ones((32, 32))).astype(np.int64)
    case = image_case("a", image, labels, 1 - labels, NAMES, default_colors(2))
    assert case.size == [(270, 360)]
    text = page([case], case.scores, default_colors(2), title="t")
    assert len(text) < 10e6 / 60


def test_stacks_and_void(pictures):
    gold = np.zeros((3, 20, 24), dtype=np.int64)
    gold[:, 5:10, 5:12], gold[:, 15:] = 1, -1
    predicted = np.maximum(gold, 0)
    predicted[1, :4] = 1
    stack = np.random.default_rng(0).integers(0, 60000, gold.shape).astype(np.uint16)
    case = image_case("stack", stack, gold, predicted, NAMES, default_colors(2))
    assert case.note == "page 2 of 3, the one with the most errors"
    ((_, _, errors),) = layers(page([case], case.scores, default_colors(2), title="t"))
    np.testing.assert_array_equal(errors[..., 0] == 255, (gold[1] >= 0) & (gold[1] != predicted[1]))
    assert case.scores.total == 3 * 15 * 24
    nothing = image_case("void", stack, np.full_like(gold, -1), predicted, NAMES, default_colors(2))
    assert "– wrong" in page([nothing, case], joined([nothing.scores, case.scores]), default_colors(2), title="t")


def test_scans_are_seen_from_above_and_from_the_side():
    (scan,), (gold,) = drawn_scans(1, points=2000)
    predicted = np.where(np.arange(len(gold)) % 100 == 0, (gold + 1) % 3, gold)
    case = scan_case("street", scan.points, gold, predicted, ("ground", "tree", "wall"), default_colors(3))
    assert [title for title, _ in case.views] == ["from above", "from the side"]
    (found,) = layers(page([case], case.scores, default_colors(3), title="t"))
    assert len(found) == 6
    colors = {tuple(color) for color in default_colors(3).tolist()}
    for at in (0, 1, 3, 4):
        seen = found[at][found[at][..., 3] > 0][:, :3]
        assert {tuple(color) for color in np.unique(seen, axis=0).tolist()} == colors
    for at in (2, 5):
        assert (found[at][..., 0] == 255).sum() >= 10
    # The wall lies behind the trees at the top of the view from above.
    green = np.argwhere((found[0][..., :3] == default_colors(3)[2]).all(axis=-1))
    assert green[:, 0].max() < found[0].shape[0] / 3


def test_near_points_hide_far_ones():
    place = np.array([[0.0, 0.0], [0.0, 0.0], [9.0, 5.0]])
    for nearness, expected in (([0.0, 1.0, 0.0], {2, 3}), ([1.0, 0.0, 0.0], {1, 3})):
        found = raster(place, np.array(nearness), np.array([1, 2, 3]))
        assert set(np.unique(found)) - {0} == expected
    assert raster(np.zeros((1, 2)), np.zeros(1), np.ones(1, dtype=np.int64)).any()
    assert side_view(np.zeros((3, 3)))[0].shape == (3, 2)


def test_indexed_png_is_read_by_others():
    numbers = np.random.default_rng(0).integers(0, 3, (7, 5))
    colors = np.array([[1, 2, 3, 0], [200, 100, 0, 255], [9, 9, 9, 77]])
    found = np.array(Image.open(io.BytesIO(indexed_png(numbers, colors))).convert("RGBA"))
    np.testing.assert_array_equal(found, colors[numbers])


# --- overlays ---


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 3), (2, 6, 8), (2, 6, 8, 3)])
def test_overlays_of_all_images(dtype, shape):
    image = (np.random.default_rng(0).random(shape) * 200).astype(dtype)
    labels = np.zeros(shape[:-1] if shape[-1] == 3 else shape, dtype=np.int64)
    labels[..., 2:5, 2:6] = 1
    drawn = overlay(image, labels, default_colors(2))
    assert (drawn.shape, drawn.dtype) == ((*labels.shape, 3), np.uint8)
    far = (labels == 0) & ~boundaries(labels)
    np.testing.assert_array_equal(drawn[far], shown_image(image)[far])  # the background is not tinted
    assert (drawn[labels == 1] != shown_image(image)[labels == 1]).any(axis=-1).mean() > 0.9
    assert overlay(np.zeros_like(image), labels, default_colors(5)).shape == drawn.shape


def test_colors_of_classes_differ():
    for count in (1, 2, 3, 12, 60):
        colors = default_colors(count)
        assert colors.shape == (count, 3)
        assert len({tuple(color) for color in colors.tolist()}) == count


def test_text_has_contrast():
    folder = resources.files("maxmargin.tasks.segmentation.show") / "templates"
    blocks = re.findall(r"\{([^{}]*--paper: [^{}]*)\}", (folder / "page.css").read_text(encoding="utf-8"))
    themes = [dict(re.findall(r"--(\w+): (#\w+);", block)) for block in blocks]
    assert len(themes) == 2  # light and dark
    for theme in themes:
        for front in ("ink", "soft", "wrong", "right"):
            for back in ("card", "paper", "band"):
                assert contrast(theme[front], theme[back]) >= 4.5, (front, back, theme)


# --- the command ---


def test_command_on_images(drawn, tmp_path):
    files = [str(drawn.folder / "two" / "test" / name) for name in ("images", "masks")]
    given = ("--images", files[0], "--masks", files[1], "--html", str(tmp_path / "report.html"), "--jobs", "1")
    said = run("segment", "report", drawn.models.two, *given)
    assert re.fullmatch(rf"wrote {re.escape(str(tmp_path / 'report.html'))}: 0\.0\d MB\n", said)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    run("segment", "predict", drawn.models.two, files[0], "--out", str(tmp_path / "out"), "--jobs", "1")
    assert f"{100 * evaluate_masks(tmp_path / 'out', files[1]).error:.2f}%" in text
    assert "Segmentation by two.mm" in text
    assert f"{mm.load(drawn.models.two).metadata['relative_gap']:.4g}" in text
    assert set(Elements(text).articles()) == {"leaf6", "leaf7", "leaf8"}


def test_command_on_scans(drawn, tmp_path):
    street = str(drawn.folder / "scans" / "test" / "street3.ply")
    run("segment", "report", drawn.models.scans, "--scans", street, "--html", str(tmp_path / "report.html"))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert Elements(text).articles() == ["street3"]
    assert "point error" in text
    assert "boundary F" not in text


def test_what_the_command_refuses(drawn, copied, tmp_path):
    images, masks = (str(copied / "two" / "test" / name) for name in ("images", "masks"))
    html = ("--html", str(tmp_path / "report.html"))
    both = ("--images", images, "--masks", masks)
    for options, words in (
        ((*both[:2], *html), "--images and --masks belong together"),
        (html, "give either --images and --masks, or --scans"),
        ((*both, "--scans", "x", *html), "give either"),
        ((*both, "x.ply", *html), "unexpected argument x.ply"),
        (("--scans", images, *html), "the model labels images; give --images"),
        ((*both, "--html", str(tmp_path)), "a folder; give --html a file"),
        ((*both, "--html", str(tmp_path / "no" / "x.html")), "its folder does not exist"),
    ):
        assert words in failed("segment", "report", drawn.models.two, *options)
    assert "the model labels scans; give --scans" in failed("segment", "report", drawn.models.scans, *both, *html)
    write_mask(
        copied / "two" / "test" / "masks" / "leaf6.png",
        np.zeros((48, 50), dtype=np.int64),
        mm.load(drawn.models.two).encoder.codes,
    )
    assert "which is another aspect ratio" in failed("segment", "report", drawn.models.two, *both, *html)
    assert not (tmp_path / "report.html").exists()


# --- the page in a browser ---

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium, for example apt-get install chromium")


def browse(folder, text, *extra, width=1300, height=3000, script=None):
    """What a browser makes of a page; fails where it writes anything to its console."""
    if script is not None:
        text = re.sub("<meta http-equiv[^>]*>", "", text).replace("</body>", f"<script>{script}</script></body>")
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr")
    place = (f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}", "--virtual-time-budget=3000")
    command = [BROWSER, *options, *place, *(extra or ("--dump-dom",)), file.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=600, check=True)
    errors = done.stderr.decode(errors="replace")
    assert "CONSOLE" not in errors, errors
    return done.stdout.decode()


def changed(element, value, event):
    """A script that sets the value of an element as a user does."""
    found = f'document.getElementById("{element}")'
    return f'{found}.value = "{value}"; {found}.dispatchEvent(new Event("{event}"));'


@in_a_browser
def test_orders_filter_and_keys(pictures, tmp_path):
    text = report(pictures)
    assert Elements(browse(tmp_path, text)).articles() == ["img10", "other", "img1", "img2"]
    by_name = browse(tmp_path, text, script=changed("order", "name", "change"))
    assert Elements(by_name).articles() == ["img1", "img2", "img10", "other"]
    names, _, gold, predicted = pictures
    scores = evaluate(gold, predicted, NAMES, images=names)
    script = changed("order", "boundary", "change") + changed("filter", "IMG", "input")
    script += """
        for (const key of "jjjkgp") document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    """
    found = Elements(browse(tmp_path, text, script=script))
    ranked = sorted(zip(scores.image_boundary_f, names, strict=True), key=lambda pair: pair[0])
    assert found.articles() == [name for _, name in ranked if name != "other"]
    marked = [tags["data-name"] for tag, tags in found.tags if tag == "article" and "aria-current" in tags]
    assert marked == [found.articles()[1]]
    (body,) = [tags for tag, tags in found.tags if tag == "body"]
    assert set(body["class"].split()) == {"gold-edges", "predicted-edges"}
    assert "3 of 4" in found.text
    nothing = Elements(browse(tmp_path, text, script=changed("filter", "zzz", "input")))
    assert nothing.articles() == []
    assert "No image has this name." in nothing.text


@in_a_browser
def test_hostile_names_stay_text(pictures, tmp_path):
    _, *rest = pictures
    document = browse(tmp_path, report_on_arrays([HOSTILE, "b", "c", "d"], *rest, NAMES, title="safe"))
    assert "<title>safe</title>" in document
    assert HOSTILE in Elements(document).articles()


@in_a_browser
@pytest.mark.parametrize("width", [500, 1300])
def test_nothing_is_wider_than_the_window(pictures, tmp_path, width):
    script = "document.title = `${document.documentElement.scrollWidth} ${innerWidth}`;"
    document = browse(tmp_path, report(pictures), width=width, script=script)
    wide, window = map(int, re.search(r"<title>(\d+) (\d+)</title>", document).groups())
    assert wide <= window


@in_a_browser
def test_the_photograph_and_the_errors_are_seen(pictures, tmp_path):
    file = tmp_path / "page.png"
    browse(tmp_path, report(pictures), f"--screenshot={file}", width=1300, height=1600)
    seen = np.array(Image.open(file).convert("RGB")).reshape(-1, 3)
    assert len(np.unique(seen, axis=0)) > 3000  # a photograph has many colors
    assert (np.abs(seen.astype(int) - (240, 61, 23)).max(axis=1) < 12).sum() > 1000
