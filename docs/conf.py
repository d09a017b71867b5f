"""Configuration of the documentation: Sphinx, MyST, the pydata theme, and sphinx-gallery."""

import re
from typing import Any

import orbitgp

project = "orbitgp"
author = "The orbitgp developers"
copyright = "The orbitgp developers, Apache-2.0"
version = release = orbitgp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_templates",
    "sg_execution_times.rst",
    "gallery/**/*.py",
    "tutorials",
]
nitpicky = True
templates_path = ["_templates"]
default_role = "literal"  # docstrings have code in single backticks

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections have the types in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "orbitgp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"*": []}  # pages at the top have no section to navigate
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
}


def _plain(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Shapes such as [B, *event] and norms such as |x| are no markup; examples stay as they are."""
    for place, line in enumerate(lines):
        if not re.match(r"\s*(>>>|\.\.\. )", line):
            parts = line.split("`")
            parts[::2] = [re.sub(r"([*|])", r"\\\1", part) for part in parts[::2]]
            lines[place] = "`".join(parts)


def setup(app: Any) -> None:
    """Before numpydoc makes markup of sections."""
    app.connect("autodoc-process-docstring", _plain, priority=100)
