"""How Sphinx makes the site (scripts/docs). The source folder is the root of the repository: READMEs are pages where
they are, and their links to each other work here as they do everywhere else."""
import os
import pathlib
import re
import subprocess
import sys

from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD", ROOT / "build" / "release"))  # set by scripts/docs
COMMAND = BUILD / "bin" / "troupe"
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "docs")]

import headers  # noqa: E402

project = "troupe"
version = re.search(r"project\(troupe VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**", "src/README.md",
                    "src/**/README.md", "actors/**README.md", "vulkan/README.md", "shaders/README.md",
                    "python/README.md", "examples/**/README.md", "bench/README.md", "scripts/README.md",
                    "tests/**/README.md"]  # fmt: skip
exclude_patterns = ["build", ".git", "docs/html", "docs/README.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.graphviz", "breathe"]
source_suffix = {".md": "markdown"}
highlight_language = "text"
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"troupe {version}"
html_copy_source = False
graphviz_output_format = "svg"

breathe_projects = {"troupe": os.environ.get("TROUPE_DOXYGEN", "")}
breathe_default_project = "troupe"
autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

PUBLIC_HEADERS = "<!-- public headers -->"


def expand(app, docname, source):
    """Replaces `<!-- public headers -->` by what the public headers declare."""
    if PUBLIC_HEADERS in source[0]:
        declared = headers.sections(ROOT / "include" / "troupe", breathe_projects["troupe"])
        source[0] = source[0].replace(PUBLIC_HEADERS, declared)


class CommandHelp(Directive):
    """What `troupe COMMAND --help-all` prints, of every subcommand."""

    def run(self):
        def printed(*arguments):
            return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True).stdout.rstrip()

        general = printed("--help")
        names = re.findall(r"^  ([a-z]+) ", general.split("Subcommands:")[1], re.M)
        made = [nodes.literal_block(general, general, language="text")]
        for name in names:
            section = nodes.section(ids=[f"troupe-{name}"])
            text = printed(name, "--help-all")
            section += [nodes.title("", f"troupe {name}"), nodes.literal_block(text, text, language="text")]
            made.append(section)
        return made


def setup(app):
    app.connect("source-read", expand)
    app.add_directive("command-help", CommandHelp)
