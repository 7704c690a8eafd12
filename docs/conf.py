"""Sphinx: how the site is made from these pages, the docstrings, the headers and the examples.

    python -m sphinx -W --keep-going -b html docs docs/_build/html

needs the package with its extra `docs`, Doxygen for the C++ reference, and no network.
"""

import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

import halosvm

ROOT = Path(__file__).parents[1]
DOXYGEN = ROOT / "docs" / "_build" / "doxygen"

project = "halosvm"
author = "The halosvm developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name
version = release = halosvm.__version__

extensions = [
    "breathe",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb", "gallery/*.py", "figures"]
templates_path = ["_templates"]
root_doc = "index"

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"halosvm {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False

# What stands in single backticks in a docstring is a link where it names something, else code.
# Names of other projects have no pages here; those of this one must have.
default_role = "py:obj"
nitpicky = True
_OWN = "|".join(["halosvm", *halosvm.__all__])
nitpick_ignore_regex = [("py:.*", rf"(?!({_OWN})\b).*"), ("cpp:.*", r"(?!halosvm\b).*")]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False

breathe_projects = {"halosvm": str(DOXYGEN / "xml")}
breathe_default_project = "halosvm"
breathe_default_members = ("members",)
breathe_show_include = False
# Each header opens the one namespace anew; that no header is there twice is tested.
suppress_warnings = ["duplicate_declaration.cpp"]

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("halosvm",),
}

_LOG = logging.getLogger(__name__)
_DIGITS = re.compile(r"(\\[dt]?frac) *(\d)(\d)")
_BAR = re.compile(r"<mo[^>]*>\|</mo>")
# What scikit-learn gives to every estimator is documented there.
_OF_SKLEARN = re.compile(r"set_\w+_request|set_output|get_metadata_routing")
# In docstrings bars are absolute values, but for these, in which they need no escape.
_AS_IT_IS = re.compile(
    r"(``[^`]+``|`[^`]+`|^ *>>> .*$|^(?P<indent> *)\.\. math::.*\n(?:(?P=indent) +.*\n|\s*\n)*)",
    re.MULTILINE,
)


def run_doxygen(_: Sphinx) -> None:
    """Write the XML of the public headers; whatever Doxygen warns of ends the build."""
    command = shutil.which("doxygen")
    if command is None:
        message = "Doxygen makes the C++ reference and is not here (Debian: apt install doxygen)"
        raise ExtensionError(message)
    DOXYGEN.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [command, str(ROOT / "docs" / "Doxyfile")],
        cwd=ROOT,
        env={**os.environ, "OUTPUT": str(DOXYGEN)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ExtensionError(done.stderr)
    for path in (DOXYGEN / "xml").glob("*.xml"):
        tree = ET.parse(path)
        for compound in tree.iter("compounddef"):
            # breathe has no way to leave these out of the page of a file
            for section in compound.findall("sectiondef"):
                if section.get("kind", "").startswith("private-"):
                    compound.remove(section)
        tree.write(path, encoding="utf-8", xml_declaration=True)


def skip_inherited(*arguments: Any) -> bool:
    """Say whether a member is left out of the page of its class."""
    _app, _what, name, _member, skip, _options = arguments
    return skip or bool(_OF_SKLEARN.fullmatch(name))


def escape_bars(*arguments: Any) -> None:
    """Keep |w| from being read as the name of a substitution."""
    lines = arguments[-1]
    text, kept = "\n".join(lines), []
    end = 0
    for found in _AS_IT_IS.finditer(text):
        kept += [text[end : found.start()].replace("|", r"\|"), found[0]]
        end = found.end()
    kept.append(text[end:].replace("|", r"\|"))
    lines[:] = "".join(kept).split("\n")


def resolve_short_name(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Find public names wherever they stand without the name of the package."""
    name = node.get("reftarget")
    if node.get("refdomain") != "py" or name not in halosvm.__all__:
        return None
    domain, page = env.get_domain("py"), node.get("refdoc")
    return domain.resolve_xref(env, page, app.builder, "obj", f"halosvm.{name}", node, content)


def write_formula(writer: Any, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers draw without a script and a network."""
    block = isinstance(node, nodes.math_block)
    # to TeX the arguments of \frac12 are its digits, to docutils the first is 12
    source = _DIGITS.sub(r"\1{\2}{\3}", node.astext())
    try:
        formula = latex2mathml.tex2mathml(source, as_block=block)
    except MathError as error:
        formula = ""
        _LOG.warning("%s: %s", error, node.astext(), location=node)
    # bars around something are told apart from one between two things by their forms
    if len(_BAR.findall(formula)) % 2 == 0:
        forms = itertools.cycle(("prefix", "postfix"))
        formula = _BAR.sub(lambda _: f'<mo form="{next(forms)}" stretchy="false">|</mo>', formula)
    writer.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Connect them."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("builder-inited", run_doxygen)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.connect("missing-reference", resolve_short_name)
