"""The report: one self-contained page for the browser, with a summary and a card for each image or scan."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from maxmargin._terminal import printable, shown
from maxmargin.tasks.common.files.text import count_of
from maxmargin.tasks.segmentation.metrics import tables
from maxmargin.tasks.segmentation.metrics.scores import Scores
from maxmargin.tasks.segmentation.show.cases import Case
from maxmargin.tasks.segmentation.show.overlay import Bytes
from maxmargin.tasks.segmentation.show.pictures import data_uri

_TEMPLATES = ("page.html", "page.css", "page.js")
_FACTS = {
    "classifier": "node classifier",
    "stages": "stages of auto-context",
    "folds": "folds",
    "examples": "training examples",
    "nodes": "nodes of their graphs",
    "solver": "solver of the cut",
    "C": "C",
    "status": "status",
    "primal": "objective",
    "dual": "lower bound of the objective",
    "relative_gap": "relative gap, certified",
    "relaxed": "relaxed objective",
    "pixel_relative_gap": "relative gap of the pixel cut",
    "iterations": "iterations",
    "seconds": "seconds of training",
}


def page(
    cases: Sequence[Case],
    scores: Scores,
    colors: Bytes,
    *,
    title: str,
    facts: Mapping[str, Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> str:
    """The report as HTML that needs no network: its content security policy allows only its own script.

    Args:
        cases: the cards, drawn worst first.
        scores: of all images or scans, also of those without a card.
        colors: of the classes, shape ``(n_classes, 3)``.
        title: heading of the page.
        facts: metadata of the model, as :attr:`Model.metadata` has them.
        level: confidence level of the intervals.
        seed: random seed of the bootstrap.
    """
    found = tables.summary([title], [scores], level=level, seed=seed)["systems"][0]
    folder = resources.files("maxmargin.tasks.segmentation.show").joinpath("templates")
    layout, style, script = ((folder / name).read_text(encoding="utf-8") for name in _TEMPLATES)
    script = f'"use strict";\n{{\n{script}}}\n'  # a block, so that no name is global
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    noun = "image" if scores.unit == "pixel" else "scan"
    ordered = sorted(cases, key=lambda case: (-_sortable(case.scores.error), case.name))
    less = f"; the {len(cases)} worst are shown" if len(cases) < len(scores.images) else ""
    values = {
        "title": _text(title),
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "style": style,
        "script": script,
        "kind": noun,
        "count": f"{count_of(len(scores.images), noun)}, {scores.total:,} labeled {scores.unit}s{less}",
        "tiles": _tiles(found, level),
        "classes": _classes(found, colors, level),
        "confusion": _confusion(found),
        "facts": _facts(facts or {}),
        "legend": _legend(list(scores.names), colors),
        "orders": _orders(scores),
        "cases": "\n".join(_card(case, number) for number, case in enumerate(ordered, start=1)),
    }
    # In one pass, so that a name that looks like a placeholder stays a name.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], layout)


def _text(value: object) -> str:
    return html.escape(printable(value))


def _percent(rate: float | None, digits: int = 1) -> str:
    return "–" if rate is None else f"{100 * rate:.{digits}f}%"


def _sortable(rate: float) -> float:
    return rate if rate == rate else -1.0


def _interval(ends: Sequence[float] | None, digits: int = 1) -> str:
    if ends is None:
        return ""
    return f"{100 * ends[0]:.{digits}f} – {100 * ends[1]:.{digits}f}"


def _tiles(found: Mapping[str, Any], level: float) -> str:
    rates = [(f"{found['unit']} error", "error", 2), ("mean IoU", "mean_iou", 1), ("boundary F", "boundary_f", 1)]
    cells = []
    for name, key, digits in rates:
        if key in found:
            ends = _interval(found[f"{key}_interval"], digits)
            note = (
                f'<span class="ends">{ends}</span> <span class="level">{100 * level:g}% interval</span>' if ends else ""
            )
            cells.append(f'<div class="tile"><dt>{name}</dt><dd>{_percent(found[key], digits)}</dd><p>{note}</p></div>')
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _swatch(color: Sequence[int]) -> str:
    red, green, blue = color
    return f'<span class="swatch" style="background:rgb({red},{green},{blue})"></span>'


def _legend(names: Sequence[str], colors: Bytes) -> str:
    items = [f"<li>{_swatch(color)}{_text(name)}</li>" for name, color in zip(names, colors.tolist(), strict=True)]
    return "".join([*items, '<li><span class="swatch wrong"></span>wrong</li>'])


def _classes(found: Mapping[str, Any], colors: Bytes, level: float) -> str:
    boundary, unit = "boundary_f" in found, found["unit"]
    heads = ["class", "IoU", f"{100 * level:g}% interval", "recall", "precision"]
    heads += [*(["boundary F"] if boundary else []), f"{unit}s", f"predicted {unit}s"]
    rows = []
    for (name, one), color in zip(found["classes"].items(), colors.tolist(), strict=True):
        cells = [
            _percent(one["iou"]),
            _interval(one["iou_interval"]),
            _percent(one["recall"]),
            _percent(one["precision"]),
        ]
        cells += [*([_percent(one["boundary_f"])] if boundary else [])]
        cells += [f"{one[f'{unit}s']:,}", f"{one[f'predicted_{unit}s']:,}"]
        tags = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{_swatch(color)}{_text(name)}</th>{tags}</tr>')
    return _table(heads, rows)


def _confusion(found: Mapping[str, Any]) -> str:
    """Rows are gold classes; cells have the share of the row, and the count as a hint."""
    rows = []
    for at, (name, row) in enumerate(zip(found["classes"], found["confusion"], strict=True)):
        total = max(sum(row), 1)
        cells = [
            f'<td class="{"right" if at == column else "wrong"}" style="--share:{100 * count / total:.1f}%" '
            f'title="{count:,} {found["unit"]}s">{100 * count / total:.1f}%</td>'
            for column, count in enumerate(row)
        ]
        rows.append(f'<tr><th scope="row">{_text(name)}</th>{"".join(cells)}</tr>')
    return _table(["gold \\ predicted", *found["classes"]], rows)


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _facts(facts: Mapping[str, Any]) -> str:
    known = [(name, facts[key]) for key, name in _FACTS.items() if facts.get(key) is not None]
    if not known:
        return ""
    items = "".join(f"<div><dt>{name}</dt><dd>{_text(shown(value))}</dd></div>" for name, value in known)
    return f'<details open><summary>The model</summary><dl class="facts">{items}</dl></details>'


def _orders(scores: Scores) -> str:
    orders = [("error", f"{scores.unit} error, worst first"), ("iou", "mean IoU, worst first")]
    orders += [("boundary", "boundary F, worst first")] if scores.boundary is not None else []
    return "".join(f'<option value="{value}">{words}</option>' for value, words in [*orders, ("name", "name")])


def _card(case: Case, number: int) -> str:
    (row,) = case.scores.per_image()
    name = _text(case.name)
    figures = [f"<b>{_percent(row['error'], 2)} wrong</b>", f"mean IoU {_percent(row['mean_iou'])}"]
    if "boundary_f" in row:
        figures.append(f"boundary F {_percent(row['boundary_f'])}")
    each = [f"{_text(of_class)} {_percent(iou)}" for of_class, iou in row["iou"].items()]
    data = {"error": row["error"], "iou": row["mean_iou"], "boundary": row.get("boundary_f")}
    sorting = "".join(f' data-{key}="{value:.6f}"' for key, value in data.items() if value is not None)
    views = [_view(case, title, size, pictures) for (title, pictures), size in zip(case.views, case.size, strict=True)]
    note = f'<p class="note">{_text(case.note)}</p>' if case.note else ""
    return (
        f'<article id="case-{number}" data-name="{name}"{sorting} tabindex="-1" aria-labelledby="name-{number}">'
        f'<h2 id="name-{number}">{name}</h2><p class="scores">{" · ".join(figures)}</p>'
        f'<p class="each">IoU: {", ".join(each)}</p>{note}{"".join(views)}</article>'
    )


def _view(case: Case, title: str, size: tuple[int, int], pictures: Sequence[Any]) -> str:
    height, width = size
    variables = [f"aspect-ratio:{width}/{height}"]
    shared = []
    if case.photo is not None:
        shared.append(f"--photo:url({data_uri(case.photo)})")
    if case.edges is not None:
        shared += [
            f"--{side}-edge:url({data_uri(png)})" for side, png in zip(("gold", "predicted"), case.edges, strict=True)
        ]
    figures = []
    for one in pictures:
        words = f"{one.title} of {case.name}{f', seen {title}' if title else ''}"
        inside = f'<img src="{data_uri(one.layer)}" alt="">' if one.layer is not None else ""
        figures.append(
            f'<figure class="{one.title}"><div class="frame" role="img" aria-label="{_text(words)}" '
            f'style="{";".join(variables)}">{inside}</div><figcaption>{one.title}</figcaption></figure>'
        )
    heading = f"<h3>{title}</h3>" if title else ""
    style = f' style="{";".join(shared)}"' if shared else ""
    return f'{heading}<div class="pictures of-{len(pictures)}"{style}>{"".join(figures)}</div>'
