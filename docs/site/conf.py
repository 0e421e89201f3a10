"""Sphinx configuration of the site. stage.py lays the pages out; nothing is fetched by the build or by the pages."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bellcrank import __version__

project, author, release = "Bellcrank", "the Bellcrank authors", __version__
copyright = "the Bellcrank authors, Apache-2.0"

extensions = ["myst_parser", "sphinx_copybutton", "mathml"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = False
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]  # pages of papers begin with a paper's own numbers

python_maximum_signature_line_length = 90

html_theme = "furo"
html_title = f"Bellcrank {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses where they are files
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "tango", "native"
