"""Sphinx configuration: `python -m sphinx -W -b html doc doc/_build/html`.

With `-D plot_gallery=0` the scripts of the gallery are listed and not run.
"""

import gc
import shutil
import sys
from pathlib import Path
from types import ModuleType

from docutils import nodes
from jinja2 import PackageLoader
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx

import skvalue
import skvalue.valuers

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
gc.set_threshold(
    100_000, 50, 100
)  # a tenth less CPU time: pages are millions of objects

project = "skvalue"
author = "The skvalue developers"
copyright = author
version = release = skvalue.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/**/*.md5"]
html_extra_path = ["llms.txt"]  # at the root of the site
nitpicky = True  # a reference to a name of ours that is not there fails the build
nitpick_ignore_regex = [
    ("py:.*", r"(matplotlib|numpy|pandas|polars|scipy|sklearn)\..*")
]
default_role = "literal"  # single backticks in docstrings, as in scikit-learn's

# Pages of names that are gone would be orphans.
shutil.rmtree(Path(__file__).parent / "generated", ignore_errors=True)

# One page a name, written from what the package exports: see api.rst and _templates.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autosummary_context = {
    "top_level": [
        n for n in skvalue.__all__ if not isinstance(getattr(skvalue, n), ModuleType)
    ],
    "valuers": skvalue.valuers.__all__,
}
numpydoc_show_class_members = False  # the template lists them
autodoc_typehints = "none"  # docstrings have the types

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # examples/reproductions has no GALLERY_HEADER.rst: doc/reproductions.rst lists its
    # scripts.
    "subsection_order": [
        f"../examples/{folder}"
        for folder in (
            "audit",
            "cleaning",
            "retraining",
            "inspection",
            "gradients",
            "networks",
            "embeddings",
            "privacy",
            "collaborative",
            "priarta",
            "ecosystem",
        )
    ],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": "/plot_",
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("skvalue",),
    "download_all_examples": False,
    "write_computation_times": False,
    "reset_modules": ("matplotlib", "gallery.log_cpu_time"),
    "reset_modules_order": "both",
    "image_scrapers": ("gallery.scrape",),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 340),
}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["skvalue.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"skvalue {version}"
html_show_sourcelink = False
html_logo = html_favicon = "images/logo.svg"
html_theme_options = {
    "header_links_before_dropdown": 4,
    "logo": {"text": "skvalue"},
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 2,
}
html_sidebars = {
    page: [] for page in ("index", "installation", "reproductions", "whats_new/*")
}


def _skip_foreign_members(app, what, name, member, skip, options):
    """Leave out what scikit-learn adds to every estimator: `get_params`, `set_output`
    and so on."""
    function = getattr(member, "fget", member)
    module = getattr(function, "__module__", None) or ""
    return skip or not module.startswith("skvalue")


# numpydoc compiles its template again for each docstring, a twentieth of a build.
_templates = SandboxedEnvironment(loader=PackageLoader("numpydoc", "templates"))
docscrape_sphinx.SandboxedEnvironment = lambda loader: _templates


def _link_scikit_learn(app, env, node, content):
    """Link names of scikit-learn to its pages; an inventory would have to be
    fetched."""
    name = node["reftarget"]
    if name.startswith("sklearn."):
        page = f"https://scikit-learn.org/stable/modules/generated/{name}.html"
        return nodes.reference("", "", content, refuri=page, internal=False)


def setup(app):
    """Register the filter of members and the links to scikit-learn."""
    app.connect("autodoc-skip-member", _skip_foreign_members)
    app.connect("missing-reference", _link_scikit_learn)
