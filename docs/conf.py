"""Settings of Sphinx for the site; ``make docs`` lays out the sources and runs it."""

from __future__ import annotations

import gc
import sys
from importlib.metadata import distribution
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

from _sphinx.sources import GALLERY, gallery  # noqa: E402
from sphinx.domains.python import PyObject  # noqa: E402

from maxmargin import __version__  # noqa: E402

gc.disable()  # a build keeps nearly all it makes; looking for garbage takes a quarter of its time and frees 0.3 of 1 GB

project = "maxmargin"
author = "the maxmargin authors"
copyright = "the maxmargin authors"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "_sphinx.markdown",
    "_sphinx.references",
    "_sphinx.sidebars",
]
root_doc = "index"
exclude_patterns = ["_files"]
smartquotes_action = "D"  # dashes alone
nitpicky = True
highlight_language = "none"
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 6
myst_fence_as_directive = ["math"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = True
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False
napoleon_numpy_docstring = False
napoleon_attr_annotations = False  # signatures have the types
napoleon_use_ivar = True  # fields of a list, as parameters are; some are members with a docstring of their own, too

next(field for field in PyObject.doc_field_types if field.name == "variable").label = "Attributes"

# All of MathJax that formulas need, in one file, which draws them without fonts: no page asks another host.
_mathjax = distribution("sphinx-mathjax-offline").locate_file("sphinx-mathjax-offline/static/mathjax/tex-svg-full.js")
mathjax_path = "tex-svg-full.js"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static", str(_mathjax)]
html_css_files = ["site.css"]
html_title = "maxmargin"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_domain_indices = False
html_use_index = False
html_sidebars = {"index": [], "changelog": [], "reference/api/*/*": ["siblings"]}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "maxmargin"},
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "show_nav_level": 1,
    "navigation_depth": 3,
    "collapse_navigation": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {
        "index": [],
        **{pages: ["page-toc"] for pages in ("*/**", "architecture", "changelog")},
    },
    "footer_start": [],
    "footer_end": [],
    "back_to_top_button": False,
}

if gallery():
    extensions.append("sphinx_gallery.gen_gallery")
    plot_gallery = "False"  # ``make docs-gallery`` sets it; examples that it ran before keep their pictures
    sphinx_gallery_conf = {
        "examples_dirs": str(GALLERY),
        "gallery_dirs": "gallery",
        "backreferences_dir": "gallery/backreferences",
        "subsection_order": "_sphinx.sources.place_of_section",
        "within_subsection_order": "_sphinx.sources.place_of_example",
        "image_srcset": ["2x"],
        "doc_module": ("maxmargin",),
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_signature": False,
        "write_computation_times": False,
        "min_reported_time": 3600,  # seconds: times of one machine say little about others
    }
