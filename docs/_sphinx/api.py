"""Pages of the API reference: one for every package that users import from, and one for every public name."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from .sources import gallery

TITLES = {
    "maxmargin.estimators": "Estimators",
    "maxmargin.encoders": "Inputs and encoders",
    "maxmargin.models": "Models",
    "maxmargin.explanation": "Explanations of predictions",
    "maxmargin.losses": "Losses",
    "maxmargin.regions": "Regions: sets and penalties of weights",
    "maxmargin.features": "Features",
    "maxmargin.solvers": "Solvers, certificates and callbacks",
    "maxmargin.path": "The regularization path",
    "maxmargin.generalization": "Generalization bounds",
    "maxmargin.training": "Training",
    "maxmargin.datasets": "Datasets",
    "maxmargin.batches": "Batch prediction",
    "maxmargin.execution": "Execution: shards and workers",
    "maxmargin.report": "Plots",
    "maxmargin.structures": "Structures",
    "maxmargin.problem": "Problems",
    "maxmargin.model_file": "The model file",
    "maxmargin.testing": "Checks for authors of structures and features",
    "maxmargin.tasks.tagging": "Sequence tagging",
    "maxmargin.tasks.alignment": "Word alignment",
    "maxmargin.tasks.segmentation": "Segmentation",
    "maxmargin.tasks.reranking": "Reranking",
    "maxmargin.tasks.parsing": "Dependency parsing",
    "maxmargin.integrations.nltk": "NLTK",
    "maxmargin.integrations.spacy.tagger": "spaCy: tagger",
    "maxmargin.integrations.spacy.parser": "spaCy: parser",
    "maxmargin.integrations.tables": "Tables: pandas, polars, Arrow, datasets",
    "maxmargin": "The package",
}
"""Titles of the packages' pages, in the order in which the reference lists them; others come after these by name.

Of ``tasks`` and ``integrations`` only those that are here have a page.
"""

HIDDEN = {"maxmargin.optimization", "maxmargin.tasks", "maxmargin.integrations", "maxmargin.cli"}
"""Modules without names of their own for users: the public ones of ``optimization`` are those of ``solvers``."""

INDEX = """\
API
===

Every public name. ``mm`` stands for ``import maxmargin as mm``; names of the package itself, such as ``mm.ChainSVM``,
are listed with the part that they belong to.

{parts}

.. toctree::
   :hidden:

{pages}
"""


@dataclass(frozen=True)
class Name:
    """A public name: where it is imported from, its page, and what it stands for."""

    path: str
    home: str
    value: Any

    @property
    def last(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def page(self) -> str:
        return f"{folder_of(self.home)}/{self.last}"

    @property
    def kind(self) -> str:
        """The directive of autodoc for it; ``data`` for a value, whose docstring autodoc does not find."""
        if inspect.isclass(self.value):
            return "autoexception" if issubclass(self.value, BaseException) else "autoclass"
        return "autofunction" if callable(self.value) else "data"

    @property
    def summary(self) -> str:
        """The first sentence of its docstring; empty if it has none."""
        return first_sentence(qualified(docstring(self), getattr(self.value, "__module__", "")))


def folder_of(module: str) -> str:
    """The folder of the pages of a package's names."""
    return module.removeprefix("maxmargin").removeprefix(".").replace(".", "-") or "package"


@cache
def modules() -> tuple[str, ...]:
    """The packages and modules of the public API, in the order of the reference."""
    package = Path(importlib.import_module("maxmargin").__file__ or "").parent
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    found = {f"maxmargin.{name}" for name in rooms | {path.stem for path in package.glob("*.py")} if name[0] != "_"}
    return *TITLES, *sorted(name for name in found - {*TITLES} - HIDDEN if names_of(name))


def _body(module: str, stub: bool = True) -> list[ast.stmt]:
    """The statements of a module or package, of its stub if it has one."""
    spec = find_spec(module)
    path = Path(spec.origin or "") if spec else Path()
    typed = path.with_suffix(".pyi")
    return ast.parse((typed if stub and typed.exists() else path).read_text(encoding="utf-8")).body


@cache
def names_of(module: str) -> tuple[str, ...]:
    """The public names of a package: those of its stub, its ``__all__`` or its imports ``as``; of a module its own."""
    loaded, body = importlib.import_module(module), _body(module)
    imports = [alias for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    names = [alias.name for alias in imports if alias.asname == alias.name]
    if not hasattr(loaded, "__path__"):
        names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names = names or list(getattr(loaded, "__all__", ()))
    return tuple(sorted(n for n in names if n[0] != "_" and not isinstance(getattr(loaded, n), ModuleType)))


@cache
def public() -> dict[str, Name]:
    """The public names by their path; what has several is listed once, by the shortest.

    The home of a name of the package itself is the part that it is imported from, for example ``maxmargin.estimators``.
    """
    top = {id(getattr(importlib.import_module("maxmargin"), name)): name for name in names_of("maxmargin")}
    found: dict[str, Name] = {}
    seen: set[int] = set()
    for module in modules():
        for name in names_of(module):
            value = getattr(importlib.import_module(module), name)
            if id(value) in seen:
                continue
            seen.add(id(value))
            path = f"maxmargin.{top[id(value)]}" if id(value) in top else f"{module}.{name}"
            found[path] = Name(path, module, value)
    return found


def docstring(name: Name) -> str:
    """The docstring of a name, "" if it has none; of data, the string after its assignment."""
    if name.kind != "data":
        text = inspect.getdoc(name.value)
        made = f"{name.last}("  # as dataclasses and named tuples begin, which make one of their fields
        inherited = inspect.isclass(name.value) and not vars(name.value).get("__doc__")
        return "" if text is None or inherited or text.startswith(made) else text
    body = _body(_defined_in(name), stub=False)
    for node, after in pairwise(body):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(isinstance(one, ast.Name) and one.id == name.last for one in targets):
            value = getattr(after, "value", None)
            return inspect.cleandoc(value.value) if isinstance(value, ast.Constant) else ""
    return ""


def _defined_in(name: Name) -> str:
    """The module that assigns data, from the stub or package that imports it."""
    for node in _body(name.home):
        if isinstance(node, ast.ImportFrom) and any(name.last in (one.asname, one.name) for one in node.names):
            return f"{name.home}.{node.module}" if node.level else node.module or name.home
    return name.home


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, without the colon of an example that follows."""
    first = " ".join(text.split("\n\n")[0].split())
    for match in re.finditer(r"[.:] (?=[A-Z])", first):
        if first.count("``", 0, match.start()) % 2 == 0:
            return first[: match.start()] + "."
    return first.rstrip(":.") + "."


def qualified(text: str, module: str) -> str:
    """A docstring whose roles have full names of what they name by its name in a module."""
    known = vars(importlib.import_module(module)) if module.startswith("maxmargin") else {}

    def full(match: re.Match[str]) -> str:
        return f":{match[1]}:`~{module}.{match[2]}`" if match[2].split(".")[0] in known else match[0]

    return re.sub(r":(class|func|data|exc|meth|attr):`(\w[\w.]*)`", full, text)


def pages() -> dict[str, str]:
    """The text of each page, in reStructuredText, by its file name."""
    names = public()
    without = [path for path, name in names.items() if not docstring(name)]
    if without:
        raise ValueError(f"public names without a docstring: {', '.join(without)}; write one where each is defined")
    texts = {f"{name.page}.rst": _page(name) for name in names.values()}
    parts, listed = [], []
    for module in modules():
        own = sorted((name for name in names.values() if name.home == module), key=lambda name: name.last)
        if own:
            title = TITLES.get(module, module)
            texts[f"{folder_of(module)}/index.rst"] = _package(module, title, own)
            parts.append(f":doc:`{title} <{folder_of(module)}/index>`, ``{module}``\n   {_links(own)}\n")
            listed.append(f"   {folder_of(module)}/index")
    texts["index.rst"] = INDEX.format(parts="\n".join(parts), pages="\n".join(listed))
    return texts


def _links(names: list[Name]) -> str:
    return ", ".join(f":doc:`{name.last} <{name.page}>`" for name in names)


def _package(module: str, title: str, names: list[Name]) -> str:
    doc = "" if module == "maxmargin" else inspect.getdoc(importlib.import_module(module)) or ""
    rows = "\n".join(f"* - :py:obj:`{name.path} <{name.path}>`\n  - {name.summary}" for name in names)
    rows = re.sub(r":py:obj:`maxmargin\.([^ ]+) <", r":py:obj:`mm.\1 <", rows)
    contents = "\n".join(f"   {name.last}" for name in names)
    return (
        f"{_titled(title)}.. py:module:: {module}\n\n{doc.split(chr(10) * 2)[0]}\n\n"
        f".. list-table::\n   :widths: 35 65\n\n{_indented(rows)}\n\n.. toctree::\n   :hidden:\n\n{contents}\n"
    )


def _page(name: Name) -> str:
    if name.kind == "data":
        return f"{_titled(name.last)}.. py:data:: {name.path}\n\n{_indented(docstring(name))}"
    text = f"{_titled(name.last)}.. {name.kind}:: {name.path}\n"
    examples = f"\n.. minigallery:: {name.path}\n   :add-heading: Examples\n" if gallery() else ""
    if not inspect.isclass(name.value):
        return text + examples
    listed = pages_by_value()
    above = name.value.__mro__[1:]
    elsewhere = [base.__name__ for base in above if id(base) in listed or not base.__module__.startswith("maxmargin")]
    shown = "   :show-inheritance:\n" if any(id(base) in listed for base in name.value.__bases__) else ""
    return f"{text}   :members:\n   :inherited-members: {', '.join(elsewhere)}\n{shown}\n{_inherited(name)}{examples}"


@cache
def pages_by_value() -> dict[int, Name]:
    """The public names by the identity of what they stand for."""
    return {id(one.value): one for one in public().values()}


def _inherited(name: Name) -> str:
    """A line for each base class with a page: its methods that the class has unchanged."""
    lines = []
    seen = set(vars(name.value))
    for base in name.value.__mro__[1:]:
        listed = pages_by_value().get(id(base))
        members = {member: value for member, value in vars(base).items() if member[0] != "_" and member not in seen}
        seen |= {*members}
        own = [member for member, value in members.items() if _is_member(value) and inspect.getdoc(value)]
        if listed is not None and own:
            links = ", ".join(f":py:obj:`{member} <{listed.path}.{member}>`" for member in own)
            lines.append(f"Inherited from :py:class:`~{listed.path}`: {links}.\n\n")
    return "".join(lines)


def _is_member(value: Any) -> bool:
    return inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)


def _titled(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def _indented(text: str) -> str:
    return "".join(f"   {line}\n" for line in text.splitlines())
