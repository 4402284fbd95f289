"""The examples of the gallery run without a warning, and each draws a picture that can be read alone."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot as plt

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_draw_pictures(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        matplotlib.use("agg")
        try:
            runpy.run_path(str(example), run_name="__main__")
            figures = [plt.figure(number) for number in plt.get_fignums()]
            assert figures, "no figure"
            for figure in figures:
                figure.savefig("figure.png")  # draws it, so that missing glyphs and bad layouts warn
                assert figure.get_suptitle() or any(axes.get_title() for axes in figure.axes), "no title"
                drawn = [axes for axes in figure.axes if axes.axison]
                named = [axes.get_title() or axes.get_xlabel() or axes.get_ylabel() for axes in drawn]
                assert all(named) or figure.get_suptitle(), "axes without a title or a label"
        finally:
            plt.close("all")


def test_every_folder_says_what_it_shows() -> None:
    folders = [GALLERY, *sorted({example.parent for example in EXAMPLES})]
    for folder in folders:
        title, line, *_ = (folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8").splitlines()
        assert len(line) == len(title)
        assert set(line) in ({"="}, {"-"})
    names = [example.name for example in EXAMPLES]
    assert len(set(names)) == len(names) >= 15
    assert all(name.startswith("plot_") for name in names), "sphinx-gallery runs only files named plot_*"
