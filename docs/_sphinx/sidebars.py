"""Sphinx extension: the sidebar of API pages, which lists the names of one package, and the titles of windows.

The theme's own sidebar shows all packages and takes a third of the time of the whole site, as there are hundreds of
pages.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

API = "reference/api/"

WINDOWS = {
    "index": "large-margin structured prediction for Python",
    "get-started/overview": "overview",
    "reference/commands/general": "command line",
}
"""What stands after the title of a page in the title of its window, where that is not the name of the project."""


def siblings(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """Give the template of the sidebar the package of a page and the pages of its names."""
    index = f"{page.rpartition('/')[0]}/index"
    if page.startswith(API) and page.count("/") > API.count("/"):
        titles = app.env.titles
        context["package"] = (index, titles[index].astext())
        context["siblings"] = [(name, titles[name].astext()) for name in app.env.toctree_includes[index]]


def window(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """Tell pages of the same title apart, such as those of functions of several packages, by what follows it."""
    if page.startswith(API) and page.count("/") > API.count("/"):
        package = page.removeprefix(API).partition("/")[0].replace("-", ".")
        context["docstitle"] = f"maxmargin.{package}" if package != "package" else "maxmargin"
    elif page in WINDOWS:
        context["docstitle"] = WINDOWS[page]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", siblings)
    app.connect("html-page-context", window)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
