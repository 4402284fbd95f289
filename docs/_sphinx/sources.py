"""The pages of the repository and the places they have on the site."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GALLERY = ROOT / "examples" / "gallery"

SECTIONS = {
    "sequences": ("tag_probabilities", "confusions", "calibration", "partial_labels", "segments", "hidden_sublabels"),
    "matchings": ("alignment_grid", "letter_costs", "pairings"),
    "cuts": ("scribbles", "cut_weights"),
    "trees": ("dependency_arcs", "operator_trees"),
    "choices": ("metric_surface", "own_structure"),
    "certificates": (
        "reading_a_certificate", "gap_curves", "saddle_point", "simplex_projections", "regularization_path",
    ),
}  # fmt: skip
"""The examples of the gallery in their order, from applications to theory."""

MEASURED = sorted(path.parent.name for path in (ROOT / "benchmarks").glob("*/RESULTS.md"))
"""The folders of benchmarks that have a page of results."""

ELSEWHERE = {
    "CHANGELOG.md": "changelog",
    "benchmarks/RESULTS.md": "reference/benchmarks/index",
    "CODE_OF_CONDUCT.md": "extending/code-of-conduct",
    "CONTRIBUTING.md": "extending/contributing",
    "SECURITY.md": "extending/security",
    "README.md": "get-started/overview",
    "examples/gallery": "gallery/index",
    **{f"benchmarks/{room}/RESULTS.md": f"reference/benchmarks/{room}" for room in MEASURED},
}
"""Pages that come from outside of docs, by their path in the repository."""

GENERATED = {
    "reference/index": {
        "reference/api/index": ("API", "every public name."),
        "reference/commands/index": ("Command line", "every command and option."),
    }
}
"""Pages that only the site has, by the page whose list they head there, each with its title and what it is."""

FILES = "_files"
"""The folder of the site's sources for files of the repository that are not pages."""

LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=(?:#[^)\s]*)?\))")
"""The target of a Markdown link or image, relative to its page."""

FIGURES = re.compile(r"<!-- /?figures?\b.*?-->|<!-- / -->", re.DOTALL)
"""The marks between which benchmarks/figures.py writes figures."""

FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*~* *$", re.DOTALL | re.MULTILINE)


def gallery() -> bool:
    """Whether there is a gallery, with the header that sphinx-gallery needs."""
    return any(GALLERY.glob("GALLERY_HEADER.*")) or any(GALLERY.glob("README.*"))


def place_of_section(folder: str) -> int:
    """The place of a folder of examples in the gallery, for sphinx-gallery."""
    return [*SECTIONS].index(Path(folder).name)


def place_of_example(example: str) -> int:
    """The place of an example by its file name, for sphinx-gallery."""
    return [f"plot_{name}.py" for names in SECTIONS.values() for name in names].index(example)


def pages() -> dict[str, Path]:
    """The Markdown file of every page that is not generated, by its name on the site."""
    found = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    elsewhere = {name: ROOT / path for path, name in ELSEWHERE.items() if (ROOT / path).is_file()}
    return {**elsewhere, **found}


def place_of(target: Path) -> str | None:
    """Where a file or folder of the repository is in the sources of the site; None if it is not there."""
    target = target.resolve()
    if not target.is_relative_to(ROOT) or not target.exists():
        return None
    inside = target.relative_to(ROOT).as_posix()
    if target == GALLERY and not gallery():
        return None
    if inside in ELSEWHERE:
        return f"{ELSEWHERE[inside]}.{'rst' if target.is_dir() else 'md'}"
    if target.is_dir():
        return place_of(target / "index.md")
    if target.is_relative_to(GALLERY) and target.suffix == ".py":
        return f"gallery/{target.relative_to(GALLERY).with_suffix('.rst').as_posix()}"
    return target.relative_to(DOCS).as_posix() if target.is_relative_to(DOCS) else f"{FILES}/{inside}"


def links(text: str) -> Iterator[re.Match[str]]:
    """The links of a Markdown page to files, apart from what is inside fenced code."""
    code = [match.span() for match in FENCE.finditer(text)]
    for match in LINK.finditer(text):
        if not any(begin <= match.start() < end for begin, end in code):
            yield match


def on_the_site(name: str, text: str) -> str:
    """The text of a page with its links as they are on the site, and without the marks of figures."""
    page = pages()[name]
    text = FIGURES.sub(lambda mark: "\n" * mark[0].count("\n"), text)  # as many lines as before, for warnings
    parts, end = [], 0
    for match in links(text):
        place = place_of(page.parent / match[0])
        if place is not None:
            parts += [text[end : match.start()], os.path.relpath(place, PurePosixPath(name).parent.as_posix())]
            end = match.end()
    text = "".join(parts) + text[end:]
    generated = GENERATED.get(name, {}).items()
    folder = PurePosixPath(name).parent.as_posix()
    items = "".join(f"- [{title}]({os.path.relpath(to, folder)}.rst): {what}\n" for to, (title, what) in generated)
    return re.sub(r"^(?=- )", lambda _: items, text, count=1, flags=re.MULTILINE)


def listed(name: str, text: str) -> list[tuple[str, dict[str, str]]]:
    """The pages that an index page lists, under its headings, each with the text of its link.

    These are the links that items of lists begin with.
    """
    page, heading = pages()[name], ""
    found: dict[str, dict[str, str]] = {}
    for line in FENCE.sub("", text).splitlines():
        if match := re.match(r"#+ (.*)", line):
            heading = match[1]
        elif match := re.match(r" *[-*] \[(.*?)\]\(([^)#:]+)\)", line):
            place = place_of(page.parent / match[2])
            if place is not None and place.endswith((".md", ".rst")) and not place.startswith(FILES):
                found.setdefault(heading, {})[place.rsplit(".", 1)[0]] = match[1].replace("`", "")
    return list(found.items())


def stage(folder: Path, generated: dict[str, str]) -> None:
    """Lay out the sources of the site in a folder: pages and their files, and generated pages by their file names.

    Files that have not changed stay as they are, so that Sphinx reads only what is new. Folders of the gallery are left
    alone: sphinx-gallery keeps them.
    """
    files: dict[str, Path] = {f"{name}.md": path for name, path in pages().items()}
    files |= {
        path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*") if path.suffix in {".png", ".svg", ".jpg"}
    }
    for page in pages().values():
        for match in links(page.read_text(encoding="utf-8")):
            place = place_of(page.parent / match[0])
            if place is not None and place.startswith(FILES):
                files[place] = (page.parent / match[0]).resolve()
    for old in folder.rglob("*"):
        inside = old.relative_to(folder).as_posix()
        if not old.is_dir() and not inside.startswith("gallery/") and inside not in files and inside not in generated:
            old.unlink()
    for name, source in files.items():
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() or to.stat().st_mtime_ns != source.stat().st_mtime_ns:
            shutil.copy2(source, to)
    for name, text in generated.items():
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.is_file() or to.read_text(encoding="utf-8") != text:
            to.write_text(text, encoding="utf-8")
