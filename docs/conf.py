"""The documentation site: ``make docs`` builds it without the network, with warnings as errors."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import shutil
import sys
import tomllib
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
REPORT = HERE / "reproduction"
sys.path.insert(0, str(HERE))

project = "muhat"
author = "The muhat developers"
copyright = author
release = version = installed_version("muhat")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["reproduction", "gallery/*.ipynb", "gallery/*.py", "generated/*.ipynb"]
templates_path = ["_templates"]
smartquotes = False
highlight_language = "text"
suppress_warnings = ["config.cache"]  # functions below are values of the gallery's configuration
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # a copied block is input only
copybutton_prompt_is_regexp = True

autodoc_typehints = "none"  # numpydoc's sections say more
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "muhat"
toc_object_entries_show_parents = "hide"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {name: [] for name in ("index", "tutorial", "gallery/*")}
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "muhat"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "choosing": [], "gallery/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# ---------------------------------------------------------------- the gallery

READING_ORDER = [
    "four_questions",
    "steins_effect",
    "robust_mean",
    "error_bars",
    "conditional_mean",
    "large_sample",
    "many_groups",
    "shares_of_groups",
    "anomalous_groups",
    "similar_groups",
    "image_patches",
    "kernel_pca",
    "two_samples",
    "independence",
    "tables",
    "failing_sensor",
]


class ReadingOrder:
    """Key of an example: its place in the list above; what is not there comes last, by name."""

    def __init__(self, folder):
        self.places = {f"{name}.py": place for place, name in enumerate(READING_ORDER)}

    def __call__(self, file):
        return self.places.get(file, len(self.places)), file

    def __repr__(self):
        return "ReadingOrder"


sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ReadingOrder,
    "image_srcset": ["2x"],  # for screens with two dots a pixel
    "doc_module": ("muhat",),
    "backreferences_dir": "gallery/backreferences",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # that page would load scripts from elsewhere
    "remove_config_comments": True,
    "thumbnail_size": (600, 400),
    "min_reported_time": 10_000,  # times of one machine under load help nobody
}

# ---------------------------------------------------------------- hooks

VALIDATION = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["numpydoc_validation"]
FOR_AUTHORS = VALIDATION["exclude"]
AUTHORS_PAGES = {
    f"muhat.{name}" for name in re.findall(r"^   ([\w.]+)$", (HERE / "architecture.md").read_text("utf-8"), flags=re.M)
}


def skip_inherited(app, what, name, obj, skip, options):
    """Leave out what scikit-learn and Python document themselves, and what only authors of kernels and means call."""
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", None) or ""
    foreign = home.split(".")[0] in {"sklearn", "builtins", "abc", "collections", "functools"}
    page = Path(app.env.docname).name
    hook = page not in AUTHORS_PAGES and any(re.search(hooks, f"{page}.{name}") for hooks in FOR_AUTHORS)
    return True if foreign or hook or name in {"count", "index"} else None


def close_blocks(app, docname, content):
    """Drop the empty line that ends a block of code: doctest needs it, a reader does not."""
    content[0] = re.sub(r"\n\n```\n", "\n```\n", content[0])


def quote_fitted_names(app, what, name, obj, options, lines):
    """Names such as mean_ in running text are names; without quotes their underscore makes a link of them."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            bold, rest = re.match(r"(\s*\*\*.+?\*\*)?(.*)", line).groups("")  # numpydoc has set names in bold already
            lines[i] = bold + re.sub(r"(?<![\w`*.:\\])([a-z]\w*[a-z0-9]_)(?=[\s,;.)]|$)", r"``\1``", rest)


LATEX = str.maketrans({"…": r"\ldots ", "·": r"\cdot "})


def write_math(translator, node, as_block=False):
    """Formulas as MathML: every browser reads it, and nothing is loaded from elsewhere."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    # An index of an accented letter would go below it; behind empty braces it stays an index.
    latex = node.astext().translate(LATEX).replace(r"\dots", r"\ldots")
    source = re.sub(r"(\\(?:hat|bar|tilde)\s?\\?\w+?)(?=[_^])", r"\1{}", latex)
    # Bars and angle brackets stay as high as their partners, and do not stretch over hats and exponents.
    formula = tex2mathml(source, as_block=as_block)
    formula = re.sub(
        r"<mo[^>]*>([∥‖⟨⟩])</mo>", lambda bar: f'<mo stretchy="false">{bar[1].replace("∥", "‖")}</mo>', formula
    )
    translator.body.append(f'<div class="formula">{formula}</div>' if as_block else formula)
    raise nodes.SkipNode


def write_display_math(translator, node):
    write_math(translator, node, as_block=True)


NAME = re.compile(r"(?:muhat\.|mh\.)?((?:\w+\.)*\w+)(?:\(.*\))?", flags=re.S)


def link_names(app, doctree, docname):
    """Turn a literal such as ``ShrunkKernelMean(target=f)`` into a link to the page of that name."""
    from docutils import nodes
    from sphinx.util.nodes import make_refnode

    objects = app.env.domains["py"].objects
    pages = {name: entry for name, entry in objects.items() if entry.objtype in {"class", "function"}}
    short = {name.rpartition(".")[2]: entry for name, entry in pages.items()}
    for literal in list(doctree.findall(nodes.literal)):
        inside = isinstance(literal.parent, nodes.reference | nodes.title | nodes.term)
        name = NAME.fullmatch(literal.astext())
        if name is None or inside:
            continue
        entry = pages.get(f"muhat.{name[1]}") or short.get(name[1])
        if entry is not None and entry.docname != docname:
            link = make_refnode(app.builder, docname, entry.docname, entry.node_id, literal.deepcopy())
            literal.replace_self(link)


def copy_report(app, error):
    """The report of ``python -m paper``, as it is, below reproduction/."""
    if error is None and REPORT.exists():
        shutil.copytree(REPORT, Path(app.outdir) / "reproduction", dirs_exist_ok=True)


def constructor_signature(app, what, name, obj, options, signature, return_annotation):
    """The signature that Python has: Sphinx would take that of ``__new__``, which only checks names of parameters."""
    from sphinx.util.inspect import stringify_signature

    if what == "class" and dataclasses.is_dataclass(obj):
        parameters = inspect.signature(obj).replace(return_annotation=inspect.Signature.empty)
        return stringify_signature(parameters), None
    return None


def drop_repeated_signatures(app, domain, kind, content):
    """One signature of a function that dispatches on the class of a kernel: Sphinx writes one for each class."""
    seen = set()
    for signature in [node for node in content.parent.children if node.tagname == "desc_signature"]:
        if signature.astext() in seen:
            content.parent.remove(signature)
        seen.add(signature.astext())


def write_notebook(app):
    """The tutorial as a notebook, to be downloaded."""
    from notebooks import notebook

    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    page = (HERE / "tutorial.md").read_text(encoding="utf-8")
    (folder / "tutorial.ipynb").write_text(json.dumps(notebook(page), indent=1), encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write_notebook)
    app.connect("object-description-transform", drop_repeated_signatures)
    app.connect("autodoc-process-signature", constructor_signature)
    app.add_html_math_renderer("mathml", (write_math, None), (write_display_math, None))
    app.connect("source-read", close_blocks)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", quote_fitted_names, priority=900)  # after numpydoc
    app.connect("doctree-resolved", link_names)
    app.connect("build-finished", copy_report)
