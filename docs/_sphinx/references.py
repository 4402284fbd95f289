"""Sphinx extension: docstrings as reStructuredText, and what the names in them refer to."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import find_pending_xref_condition, make_refnode

from . import api

PAGE = re.compile(r"(?<![\w/`])docs/([\w/-]+)\.md")
CODE_FOLLOWS = re.compile(r"(?<!:):(\n\n( +))(?=\S)")


def as_rst(app: Sphinx, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make code of indented blocks that follow a colon, links of names of pages, and full names of short ones."""
    text = api.qualified("\n".join(lines), getattr(thing, "__module__", None) or "")
    text = PAGE.sub(r":doc:`/\1`", text)
    # An empty line before those of attributes: Napoleon would take what comes before their first colon for a type.
    start = "\n" if kind in ("attribute", "property", "data") else ""
    lines[:] = (start + _with_code(text)).split("\n")


def signature(
    app: Sphinx, kind: str, name: str, thing: Any, options: Any, found: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """The signature with types as the source has them, in which aliases such as FloatArray keep their names.

    Defaults that are not written as they are printed are left out.
    """
    if not found:
        return None
    try:
        given = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    if not all(isinstance(one.annotation, str) or one.annotation is one.empty for one in given.parameters.values()):
        return None
    named = [one for at, one in enumerate(given.parameters.values()) if at or one.name not in ("self", "cls")]
    shown = [one if _is_plain(one.default) else one.replace(default=_Omitted()) for one in named]
    text = str(given.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    returns = given.return_annotation
    text = re.sub(r": '([^']*)'", r": \1", text)  # strings, as annotations of the source are
    return text, returns if isinstance(returns, str) and kind not in ("class", "exception") else None


class _Omitted:
    """Stands for a default in a signature."""

    def __repr__(self) -> str:
        return "..."


def _is_plain(default: Any) -> bool:
    return default is inspect.Parameter.empty or not re.search(r"[</]", repr(default))


def skipped(app: Sphinx, kind: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to estimators: requests of metadata."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def _with_code(text: str) -> str:
    """Double the colon before indented blocks after an empty line; sections of Google style have none."""
    found, end = [], 0
    for match in CODE_FOLLOWS.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        indent = len(line) - len(line.lstrip())
        if len(match[2]) > indent:
            found += [text[end : match.start()], "::"]
            end = match.start() + 1
    return "".join(found) + text[end:]


class PythonNames(SphinxPostTransform):
    """Links of names of Python objects to their pages, under whichever of their names; plain code for what has no page.

    Sphinx would compare a name with the ends of all documented ones, which is slow and finds what was not meant. A name
    in a docstring that stands for nothing is left to Sphinx, which reports it.
    """

    default_priority = 5  # before Sphinx resolves references

    def run(self, **settings: Any) -> None:
        """Replace the references of one page."""
        for node in [*self.document.findall(pending_xref)]:
            if node.get("refdomain") == "py":
                content = find_pending_xref_condition(node, "resolved")
                shown = (content or node).children[0]
                if (new := self.link(node, shown)) is not None:
                    node.replace_self(new)

    def link(self, node: pending_xref, shown: Any) -> Any:
        """What to put in place of a reference; None if it stands for nothing."""
        objects = self.env.domains.python_domain.objects
        target = node["reftarget"].removeprefix("mm.")
        for path in _paths(*_scope(node), target):
            value, member = _found(path)
            if value is None:
                continue
            name = api.pages_by_value().get(id(value))
            anchor = f"{name.path}.{member}".rstrip(".") if name else getattr(value, "__name__", "")
            if (entry := objects.get(anchor)) is not None:
                return make_refnode(
                    self.app.builder, self.env.current_document.docname, entry.docname, entry.node_id, shown
                )
            return shown
        in_docstring = isinstance(shown, nodes.literal)
        elsewhere = not target.startswith("maxmargin") and ("." in target or hasattr(builtins, target))
        return shown if elsewhere or not in_docstring else None


def _scope(node: pending_xref) -> tuple[str, str]:
    """The module and the class or function that a reference is in."""
    above = node.parent
    while above is not None and not isinstance(above, desc_signature):
        above = above.parent
    if above is not None:
        return above["module"], above["fullname"].split(".")[0]
    return node.get("py:module") or "", node.get("py:class") or ""


def _paths(module: str, cls: str, target: str) -> list[str]:
    """The names that a target may stand for, seen from a module and a class or function in it."""
    value, _ = _found(f"{module}.{cls}".rstrip("."))
    homes = [base.__module__ for base in value.__mro__] if isinstance(value, type) else [module]
    seen = (target, f"{module}.{cls}.{target}", f"{module}.{target}", *(f"{home}.{target}" for home in homes))
    return [path.lstrip(".") for path in seen]


@cache
def _found(path: str) -> tuple[Any, str]:
    """The class, function or module that a path names, or None, and the rest of the path: a member of the class."""
    parts = path.split(".")
    if parts[0] != "maxmargin":
        return None, ""
    value: Any = importlib.import_module(parts[0])
    for at, part in enumerate(parts[1:], 1):
        if isinstance(value, type):
            exists = hasattr(value, part) or part in getattr(value, "__annotations__", {})
            return (_owner(value, part), ".".join(parts[at:])) if exists else (None, "")
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[: at + 1]))
            except ImportError:
                return None, ""
    return value, ""


def _owner(cls: type, member: str) -> type:
    """The class with a page that has a member in its own body."""
    return next((one for one in cls.__mro__ if member in vars(one) and id(one) in api.pages_by_value()), cls)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", as_rst, priority=400)  # before Napoleon
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skipped)
    app.add_post_transform(PythonNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
