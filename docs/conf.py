"""Settings of the documentation: ``make docs`` builds it into docs/_build/html.

Pages are Markdown, the gallery comes from the scripts in examples/, which are run, and the
reference from docstrings. Every warning is an error, a link that leads nowhere among them.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from hikernel import __version__

# A style for code that comes with the theme makes the root logger write everything.
logging.getLogger("hikernel").propagate = False

project = "hikernel"
author = "the hikernel developers"
copyright = "the hikernel developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "docstrings",
    "mathtext_svg",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
nitpicky = True
# Names of other projects cannot be looked up without a network; ours must all be found.
nitpick_ignore_regex = [("py:.*", r"(?!hikernel\.).*")]

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
smartquotes = False

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Types are words here, and attributes are listed like parameters: neither is a name to look up.
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": ["../examples/tables", "../examples/graphs"],
    "within_subsection_order": "gallery_order.place",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
}

html_theme = "furo"
html_math_renderer = "mathtext_svg"
html_title = "hikernel"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
