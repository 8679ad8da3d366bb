"""Sphinx: `python -m sphinx -W -b html docs docs/_build`, with the extra `docs` installed.

The notebooks are run, which takes minutes; JAXSPV_NOTEBOOKS=stored shows them as committed.
"""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE), str(HERE.parent)]

import charts  # noqa: E402  (in this folder)
import public_api  # noqa: E402
import stored_results  # noqa: E402

import jaxspv  # noqa: E402
import jaxspv.verify  # noqa: E402, F401  (a module of its own, which the reference shows)

project, author = "jaxspv", "The jaxspv authors"
copyright = "the jaxspv authors"
version = release = public_api.version(HERE.parent)

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "plain_docstrings",
]
exclude_patterns = ["_build", "_ext", "_static", "jupyter_execute", "**.ipynb_checkpoints"]
INCLUDED = ("against", "headline", "libraries", "report_*", "summary")  # parts of pages
exclude_patterns += [f"results/{part}.md" for part in INCLUDED]

# Markdown. Notebooks are run below, by what writes the committed ones.
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True
suppress_warnings = ["mystnb.unknown_mime_type", "ref.python"]  # words that are names too

# The reference: pages by what a name is for, written anew from `jaxspv` with every build.
autodoc_typehints = "none"  # the docstrings say what an argument is
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False  # shapes in annotations are no markup
maximum_signature_line_length = 76
toc_object_entries_show_parents = "hide"
add_module_names = False
public_api.write(jaxspv, HERE / "api")
run = os.environ.get("JAXSPV_NOTEBOOKS", "run") != "stored"
public_api.copy_notebooks(HERE.parent / "examples", HERE / "examples", run=run)
stored_results.copy(HERE.parent / "benchmarks", HERE / "results")
charts.write_tables(HERE / "results")

html_theme = "furo"
html_title = "jaxspv"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
