"""Write AGENTS.md and doc/llms.txt from the pages that people read.

AGENTS.md, for programs that work on the code, is doc/contributing.rst as Markdown.
llms.txt, at the root of the site, lists methods and pages for programs that answer
questions of users: from README.md and the titles of the pages.

Run `python doc/write_summaries.py` after a change of those. With `--check` nothing is
written; exits with 1 if a file is not what would be written.
"""

import argparse
import re
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = ROOT / "doc" / "contributing.rst"

AGENTS_HEAD = """# Working on skvalue

Written by `python doc/write_summaries.py` from
[doc/contributing.rst](doc/contributing.rst).

skvalue values data: each method is a scikit-learn estimator with an array `values_`
after `fit`. Read first the page of what you change in `doc/user_guide`, and the tests
that mirror its package. Before you hand over a change, run the tests of the packages
that it touches, and the linters.
"""

LLMS_HEAD = """# skvalue

> {summary}

Every valuer is a scikit-learn estimator: `Valuer().fit(X, y).values_` has one value per
row.
"""


def is_rule(line):
    """Whether a line is the rule of a simple table."""
    return bool(re.fullmatch(r"=+(  +=+)+", line))


def inline_markdown(text):
    """Roles and literals of reStructuredText as Markdown."""
    text = re.sub(r":doc:`([^<`]+)`", r"[\1](doc/\1.rst)", text)
    text = re.sub(r":ref:`([^<`]+)`", r"`doc/api.rst` (\1)", text)
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    # The last name of a dotted path that begins with a tilde, as Sphinx shows it.
    text = re.sub(r":\w+:`~[\w.]*?(\w+)`", r"`\1`", text)
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def table_rows(lines):
    """Rows of cells of a simple table; a row without its first cell goes on."""
    starts = [match.start() for match in re.finditer("=+", lines[0])]
    ends = [*starts[1:], None]
    rows = []
    for line in lines[1:]:
        if is_rule(line):
            continue
        cells = [line[a:b].strip() for a, b in zip(starts, ends)]
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells)]
    return rows


def table_markdown(lines):
    """A simple table as a table of Markdown."""
    head, *rows = table_rows(lines)
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def to_markdown(text):
    """The parts of reStructuredText that the page of contributing uses, as Markdown."""
    lines = text.splitlines()
    written = []
    i = 0
    while i < len(lines):
        line = lines[i]
        following = lines[i + 1] if i + 1 < len(lines) else ""

        if line and re.fullmatch(r"[=-]{3,}", following):
            level = "##" if following[0] == "-" else "#"
            written.append(f"{level} {line}")
            i += 2
        elif line.startswith(".. literalinclude:: ../"):
            path = line.split("../")[1]
            written.append(f"See [{path}]({path}).")
            i += 1
            while i < len(lines) and lines[i].startswith("   "):
                i += 1
        elif line.startswith(".. code-block:: "):
            written.append(f"```{line.split()[-1]}")
            # A directive, a blank line, and the indented block.
            i += 2
            while i < len(lines) and (not lines[i] or lines[i].startswith("   ")):
                written.append(lines[i][3:])
                i += 1
            while not written[-1]:
                written.pop()
            written += ["```", ""]
        elif is_rule(line):
            rules = [j for j in range(i, len(lines)) if is_rule(lines[j])]
            end = rules[2]
            written += [
                inline_markdown(row) for row in table_markdown(lines[i : end + 1])
            ]
            i = end + 1
        elif line.startswith(".. _"):
            i += 1
        else:
            written.append(inline_markdown(line))
            i += 1
    return "\n".join(written).strip() + "\n"


def agents():
    """The text of AGENTS.md."""
    page = CONTRIBUTING.read_text(encoding="utf-8")
    start = page.index("Five commands of daily work\n")
    return f"{AGENTS_HEAD}\n{to_markdown(page[start:])}"


def page_title(path):
    """The first heading of a page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for line, following in pairwise(lines):
        if line and re.fullmatch(r"[=-]{3,}", following):
            return inline_markdown(line)
    raise ValueError(f"{path} must have a heading.")


def page_list(paths):
    """Links to built pages, one a line."""
    for path in paths:
        address = path.relative_to(ROOT / "doc").with_suffix(".html").as_posix()
        yield f"- [{page_title(path)}]({address})"


def llms():
    """The text of llms.txt."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    summary = " ".join(readme.split("\n\n")[1].split())
    _, _, methods = readme.partition("## Methods\n")
    methods = methods.partition("\n## ")[0]

    rows = [line.strip("|").split("|") for line in methods.splitlines() if "|" in line]
    names = []
    for name, answers, *_ in rows[2:]:
        names.append(f"- {name.strip()}: {answers.strip()}")

    doc = ROOT / "doc"
    guide = sorted((doc / "user_guide").glob("*.rst"))
    pages = sorted(path for path in doc.glob("*.rst") if path.stem != "index")
    parts = [
        LLMS_HEAD.format(summary=summary),
        "## Methods\n",
        *names,
        "\n## User guide\n",
        *page_list(guide),
        "\n## Pages\n",
        *page_list(pages),
        "- [Gallery of scripts](auto_examples/index.html)",
    ]
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check

    texts = {ROOT / "AGENTS.md": agents(), ROOT / "doc" / "llms.txt": llms()}
    stale = []
    for path, text in texts.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if not is_check:
            path.write_text(text, encoding="utf-8")

    if is_check and stale:
        sys.exit(f"{', '.join(stale)}: run python doc/write_summaries.py")


if __name__ == "__main__":
    main()
