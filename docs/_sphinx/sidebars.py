"""Sphinx extension: the sidebar of API pages, which lists the names of one package.

The theme's own shows all packages and takes a third of the time of the whole site, as there are hundreds of pages.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

API = "reference/api/"


def siblings(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """Give the template of the sidebar the package of a page and the pages of its names."""
    index = f"{page.rpartition('/')[0]}/index"
    if page.startswith(API) and page.count("/") > API.count("/"):
        titles = app.env.titles
        context["package"] = (index, titles[index].astext())
        context["siblings"] = [(name, titles[name].astext()) for name in app.env.toctree_includes[index]]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", siblings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
