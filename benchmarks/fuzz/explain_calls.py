"""Calls of ``explain`` of estimators and tasks with odd arguments, and of what explanations show."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz import task_calls
from maxmargin.tasks import parsing

Arguments = dict[str, Any]
Calls = dict[str, tuple[Any, Any]]

SENTENCE = [{"form": form, "upos": tag} for form, tag in (("the", "DET"), ("dog", "NOUN"), ("barks", "VERB"))]
TREE = ([2, 3, 0], ["det", "nsubj", "root"])


MATRICES = ("", "features", "node_features", "edge_features")
"""Matrices whose columns get names; "" for the first one of an input."""


@functools.cache
def parser() -> parsing.DependencyParser:
    """A trained parser."""
    return parsing.DependencyParser(C=0.1, bits=10, max_iter=2, tol=0.1).fit([SENTENCE] * 3, [TREE] * 3)


def names_of(trained: Any, x: Any, matrix: str) -> Any:
    """Names for as many columns as a matrix of an input has; None if the input has no such matrix."""
    for width in range(9):
        with suppress(ValueError):
            names = [f"column {number}" for number in range(width)]
            given = {matrix: names} if matrix else names
            trained.explain(x, feature_names=given)
            return given
    return None


def with_one_of(always: Arguments, *others: Arguments) -> Callable[[np.random.Generator], Arguments]:
    """The arguments that a call always has, and one of several groups of others, which exclude each other."""
    return lambda random: {**always, **others[random.integers(len(others))]}


def explained(trained: Callable[[], Any], **arguments: Any) -> None:
    """Explain, and show the explanation in every form."""
    found = trained().explain(**arguments)
    found.to_text()
    found.to_html()
    json.dumps(found.to_dict())


def shown(form: str, **arguments: Any) -> None:
    """Show a good explanation with odd arguments."""
    found = task_calls.tagger("words").explain(task_calls.WORDS[0])
    if form != "save_html":
        getattr(found, form)(**arguments)
        return
    with tempfile.TemporaryDirectory() as folder, suppress(OSError):  # what the system says of a name
        path = arguments.pop("path")
        inside = isinstance(path, str) and path.isascii() and "/" not in path
        found.save_html(str(Path(folder, path)) if inside else path, **arguments)


def calls(kinds: dict[str, tuple[Any, Callable[..., Any], Arguments]], fitted: Callable[[str], Any]) -> Calls:
    """Explanations of trained estimators of some kinds, and of the tasks.

    Args:
        kinds: the estimators: their classes, makers of data, settings.
        fitted: the trained estimator of a kind.
    """
    found: Calls = {}

    def add(name: str, trained: Callable[[], Any], x: Any, *others: Arguments, **always: Any) -> None:
        found[name] = (functools.partial(explained, trained), with_one_of({"x": x, **always}, {}, *others))

    def named(kind: str, x: Any, random: np.random.Generator) -> Arguments:
        return {"x": x, "feature_names": names_of(fitted(kind), x, MATRICES[random.integers(len(MATRICES))])}

    for kind, (_, make, _) in kinds.items():
        X, y = make(4)
        trained = functools.partial(fitted, kind)
        add(kind, trained, X[0], {"against": y[0]}, {"at": 0})
        found[f"{kind}.named"] = (functools.partial(explained, trained), functools.partial(named, kind, X[0]))
    for kind, sentences in (("words", task_calls.WORDS), ("dicts", task_calls.DICTS), ("rows", task_calls.ROWS)):
        trained = functools.partial(task_calls.tagger, kind)
        names = {"feature_names": ["a", "b"] if kind == "rows" else None}
        add(f"tagger.{kind}", trained, sentences[0], {"against": task_calls.TAGS[0]}, {"at": 1}, names)
    aligner = functools.partial(task_calls.aligner, "")
    add("aligner", aligner, task_calls.PAIRS[0], {"against": task_calls.LINKS[0]}, {"at": (0, 1)}, adapt=False)
    for kind, lists in (("numbers", task_calls.LISTS), ("texts", task_calls.NAMED)):
        add(f"reranker.{kind}", functools.partial(task_calls.reranker, kind), lists[0], {"against": 1})
    for kind, place in (("images", (3, 4)), ("scans", 5)):
        inputs, labels = task_calls.drawings(kind)
        add(
            f"segmenter.{kind}",
            functools.partial(task_calls.segmenter, kind),
            inputs[0],
            {"against": labels[0]},
            {"at": place},
        )
    add("parser", parser, SENTENCE, {"against": TREE}, {"against": TREE[0]}, {"at": 1}, relation=False)
    add("parser.relation", parser, SENTENCE, {"against": "det"}, at=1, relation=True)
    forms: dict[str, Arguments] = {
        "to_dict": {"top": 3},
        "to_text": {"top": 3, "width": 60},
        "to_html": {"top": 3, "title": "Title"},
        "save_html": {"path": "page.html", "top": 3, "title": "Title"},
    }
    for form, arguments in forms.items():
        found[form] = (functools.partial(shown, form), task_calls.fixed(**arguments))
    return found
