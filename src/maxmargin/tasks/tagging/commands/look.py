"""The verb ``inspect``: what a tagger has learned."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin._terminal import fail, printable, shown
from maxmargin.tasks.common.commands import errors_as_lines
from maxmargin.tasks.tagging.commands.options import AsJson, loaded

if TYPE_CHECKING:
    from maxmargin.structures.base import FloatArray, IntArray
    from maxmargin.tasks.tagging.model import TaggerModel

Named = list[dict[str, Any]]


def inspect(
    model: Annotated[Path, typer.Argument(help="A model written by tag train.")],
    top: Annotated[int, typer.Option("--top", min=1, help="How many of the strongest weights of each kind.")] = 10,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="Only this label; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the strongest attributes of each label, the strongest transitions, and how the model was trained."""
    with errors_as_lines():
        tagger = loaded(model, 1)
        from maxmargin.tasks.tagging.commands.describe import metadata_of

        names = [str(one) for one in tagger.labels]
        for one in label or ():
            if one not in names:
                fail(f"no label {one!r}; there are {', '.join(names)}")
        chosen = [at for at, name in enumerate(names) if not label or name in label]
        found = {"metadata": metadata_of(tagger), **strongest(tagger, top, chosen, whole=not label)}
    if as_json:
        print(json.dumps(found), flush=True)
        return
    _print(found)


def strongest(model: TaggerModel, top: int, chosen: list[int], *, whole: bool) -> dict[str, Any]:
    """The largest and smallest weights: of attributes by label, and of transitions.

    Args:
        model: the tagger.
        top: how many of each.
        chosen: codes of the labels that are looked at.
        whole: whether all are; otherwise transitions are those to or from the chosen ones.
    """
    import numpy as np

    names = [str(one) for one in model.labels]
    layout = model.layout
    tokens, pairs, rest = layout.split(model.weights)
    order = np.argsort(layout.support.columns, kind="stable")
    bounds = np.searchsorted(layout.support.columns[order], np.arange(layout.n_labels + 1))
    features = layout.support.features
    labels = []
    for code in chosen:
        own = order[bounds[code] : bounds[code + 1]]

        def named(at: int, own: IntArray = own) -> dict[str, Any]:
            return {"attribute": model.extractor.name(int(features[own[at]]))}

        labels.append({"label": names[code], "weights": len(own), **_ends(tokens[own], top, named)})
    k = layout.n_labels
    constraints = np.ones((k, k), dtype=bool) if layout.constraints is None else layout.constraints.pairs
    seen = np.zeros(k, dtype=bool)
    seen[chosen] = True
    wanted = np.flatnonzero(constraints & (whole | seen[:, None] | seen[None, :]))
    found: dict[str, Any] = {
        "labels": labels,
        "transitions": _ends(
            pairs.ravel()[wanted], top, lambda at: {"from": names[wanted[at] // k], "to": names[wanted[at] % k]}
        ),
    }
    if layout.order == 2:
        triples = np.flatnonzero((constraints[:, :, None] & constraints[None, :, :]).ravel())
        found["triples"] = _ends(
            rest.ravel()[triples],
            top,
            lambda at: {"labels": [names[code] for code in np.unravel_index(triples[at], (k, k, k))]},
        )
    support = layout.edge_support
    if support is not None:
        of_pair = support.columns.astype(np.int64)
        found["attributes of pairs"] = _ends(
            rest,
            top,
            lambda at: {
                "attribute": model.extractor.edge_name(int(support.features[at])),
                "from": names[of_pair[at] // k],
                "to": names[of_pair[at] % k],
            },
        )
    return found


def _ends(weights: FloatArray, top: int, named: Callable[[int], dict[str, Any]]) -> dict[str, Named]:
    """The largest weights above zero and the smallest below, strongest first."""
    import numpy as np

    found: dict[str, Named] = {}
    for name, signed in (("positive", -weights), ("negative", weights)):
        few = np.arange(len(signed)) if len(signed) <= top else np.argpartition(signed, top - 1)[:top]
        few = few[signed[few] < 0]
        few = few[np.lexsort((few, signed[few]))]
        found[name] = [{**named(int(at)), "weight": float(weights[at])} for at in few]
    return found


def _print(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
    metadata = Table(show_header=False, box=None, pad_edge=False)
    for key, value in found["metadata"].items():
        metadata.add_row(Text(key), Text(shown(value)))
    console.print(metadata)

    def section(title: str, ends: dict[str, Named], words: Callable[[dict[str, Any]], str]) -> None:
        table = Table(box=None, pad_edge=False, show_header=False)
        for _ in range(2):
            table.add_column(justify="right")
            table.add_column()
        sides = [ends["positive"], ends["negative"]]
        for at in range(max(map(len, sides))):
            cells = [
                cell
                for side in sides
                for cell in ((f"{side[at]['weight']:+.4f}", words(side[at])) if at < len(side) else ("", ""))
            ]
            table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells))
        console.print()
        console.print(Text(printable(title)), style="bold")
        console.print(table)

    for one in found["labels"]:
        section(one["label"], one, lambda entry: str(entry["attribute"]))
    section("transitions", found["transitions"], lambda entry: f"{entry['from']} {entry['to']}")
    if "triples" in found:
        section("three labels", found["triples"], lambda entry: " ".join(entry["labels"]))
    if "attributes of pairs" in found:
        title = "attributes of pairs"
        section(title, found[title], lambda entry: f"{entry['from']} {entry['to']}  {entry['attribute']}")
