"""The page of a report: what the template shows."""

import base64
import os
from collections import Counter
from functools import cache
from hashlib import sha256
from importlib.resources import files as package_files

import numpy as np

from ..._utils.duration import duration
from ..._utils.optional import import_optional
from ..._utils.output_files import split_ending
from ..._utils.text import number_text, shell_word
from .._overview import bars_path
from ..checks import rows_shown
from ._verdict_files import shown_number

_MOST_CONFUSED = 8  # pairs of label and suggestion that the page counts
_MOST_GROUPS = 50  # groups of equal or nearly equal rows that the page shows
_MOST_ROWS = 10  # rows of such a group
_MOST_FIXED = 5000  # rows of which one button changes the label
_OPINIONS = ("forest", "boosting", "logistic", "ridge", "neighbors")

# Sections of the page -> kinds of findings; other kinds are of columns.
_SECTIONS = {
    "target": ("missing labels", "spelling", "rare labels", "weak model"),
    "equal": ("equal rows", "conflicts", "nearly equal rows"),
    "validation": ("copies in validation", "conflicts in validation"),
    "rows": ("far rows", "empty rows", "improbable entries"),
    "order": ("order of labels", "order of rows"),
}
_SECTION_OF_KIND = {kind: name for name, kinds in _SECTIONS.items() for kind in kinds}


def page(report, files):
    """The HTML text of a report.

    Its policy lets nothing load, and no script run but its own.

    files : dict, names of the files "table" and "report" for the commands that it shows
    """
    template, style, script = _assets()
    names, words = _file_names(report, files)
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    return template.render(
        **_context(report),
        files=names,
        words=words,
        policy=policy,
        style=style,
        script=script,
    )


@cache
def _assets():
    """The template, compiled once, and the texts of style and script."""
    jinja2 = import_optional("jinja2", "to_html")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_read_asset("html.jinja"))
    return template, _read_asset("css"), _read_asset("js")


def _read_asset(kind):
    path = package_files("skvalue.audit.report") / f"report.{kind}"
    return path.read_text(encoding="utf-8")


def _hash(text):
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _file_names(report, files):
    """Names of files for the page, and the same as words of its commands, by name.

    Files that are not known have no name.
    """
    table = os.path.basename(os.path.normpath(files.get("table") or "."))
    if table == ".":
        table = ""
    stem, ending = split_ending(table or report.about["title"])
    names = {
        "table": table,
        "report": os.path.basename(files.get("report") or ""),
        "corrections": f"{stem}.corrections.csv",
        "fixed": f"{stem}.fixed{ending or '.csv'}",
        "page": f"{stem}.html",
    }
    return names, {name: shell_word(file) for name, file in names.items() if file}


def _key(report):
    """What the browser keeps verdicts under: that of this table and this list only."""
    parts = (
        report.about["title"],
        report.about["target"],
        report.labels.tolist(),
        report.numbers.tolist(),
        report.listed.tolist(),
    )
    return "skvalue-" + sha256(repr(parts).encode()).hexdigest()[:32]


def _context(report):
    """The names of the template."""
    # Classes, and which are taken for which, are of a classification alone.
    pairs = Counter()
    classes = []
    if report.about["task"] != "regression":
        for row in report.listed:
            pairs[str(report.labels[row]), str(report.suggestions[row])] += 1
        classes = sorted({_text(label) for label in report.labels.tolist()})

    # Groups of equal rows are shown among the conflicts if any of their labels differ.
    in_conflict = {row for group in report.conflicts for row in group.tolist()}
    agreeing = [
        group for group in report.duplicates if in_conflict.isdisjoint(group.tolist())
    ]
    serious = [
        finding
        for finding in report.findings
        if finding.severity in ("error", "warning")
    ]
    listed = _listed(report)
    return {
        "about": report.about,
        "report": report,
        "key": _key(report),
        "statement": report.statement,
        "listed": listed,
        "labels": sorted({entry["label"] for entry in listed}),
        "pairs": pairs.most_common(_MOST_CONFUSED),
        "conflicts": _groups(report, report.conflicts),
        "equal": _groups(report, agreeing),
        "similar": [_differences(pair) for pair in _groups(report, report.similar)],
        "classes": classes,
        "n_wrong": sum(report.verdicts.values()),
        "sections": _sections(report),
        "counts": Counter(finding.severity for finding in report.findings),
        "first": serious[0] if serious else None,
        "bars_path": bars_path,
        "most_wrong": most_wrong(report.fraction_listed),
        "number_text": number_text,
        "duration": duration(report.about["seconds"]),
    }


def _sections(report):
    """Section of the page -> its findings, as it shows them."""
    sections = {name: [] for name in (*_SECTIONS, "columns")}
    for finding in report.findings:
        name = _SECTION_OF_KIND.get(finding.kind, "columns")

        # Rows, with what is said of their entries; the page shows groups of equal rows.
        sentences = finding.evidence.get("said", ())
        if not isinstance(sentences, list):
            sentences = ()
        sentence_of = dict(zip((row for row, _ in finding.cells), sentences))
        rows = () if name == "equal" else rows_shown(finding)
        mentions = [
            {**_mention(report, row), "said": sentence_of.get(row)} for row in rows
        ]
        entry = {"finding": finding, "shown": mentions, "numbers": []}

        # One button changes the labels of a finding.
        if 0 < len(finding.fix) <= _MOST_FIXED:
            first_row, _, new = finding.fix[0]
            entry["numbers"] = [shown_number(report, row) for row, _, _ in finding.fix]
            entry["old"] = str(report.labels[first_row])
            entry["new"] = new
        sections[name].append(entry)
    return sections


def _groups(report, groups):
    """What the page says on the first rows of the first groups."""
    return [
        [_mention(report, row) for row in group[:_MOST_ROWS].tolist()]
        for group in groups[:_MOST_GROUPS]
    ]


def _differences(pair):
    """A pair of rows, and the columns in which they differ."""
    first, second = (entry["content"] for entry in pair)
    columns = []
    if isinstance(first, dict) and isinstance(second, dict):
        columns = [
            name for name in first if first[name] != second.get(name, first[name])
        ]
    return {"rows": pair, "columns": columns}


def _listed(report):
    """What the page says on the rows of the list, most doubtful first."""
    records = [
        dict(zip(report.rows, entries)) for entries in zip(*report.rows.values())
    ]
    record_of = {record["row"]: record for record in records}
    to_review = set(report.to_review.tolist())
    statement = report.statement
    entries = []
    for rank, row in enumerate(report.listed.tolist(), 1):
        if row not in record_of:
            continue
        record = record_of[row]
        opinions = {name: record.get(name) for name in _OPINIONS}
        entry = {
            **_mention(report, row),
            "rank": rank,
            "suggestion": _text(report.suggestions[row]),
            "value": float(report.values[row]),
            "probability": record.get("probability"),
            "opinions": {
                name: opinion
                for name, opinion in opinions.items()
                if opinion is not None
            },
            "review": row in to_review,
        }
        if statement is not None:
            entry["q"] = float(statement.q_values[row])
            entry["named"] = bool(statement.label_error[row])
        for name in ("supporters", "opponents"):
            entry[name] = [_mention(report, other) for other in record.get(name, ())]
        entries.append(entry)
    return entries


def _mention(report, row):
    """Number, label, suggestion, verdict and contents of a row."""
    content = report.contents.get(row)
    row_id = None
    if isinstance(content, dict):
        id_column = report.about["id"]
        row_id = content.get(id_column)
        content = {name: cell for name, cell in content.items() if name != id_column}
    return {
        "row": row,
        "number": shown_number(report, row),
        "id": row_id,
        "label": _text(report.labels[row]),
        "old": _entry(report, row),
        "new": str(report.suggestions[row]),
        "verdict": report.verdicts.get(row),
        "content": content,
    }


def _entry(report, row):
    """What a correction changes: the entry of the file, or the label as a text."""
    is_regression = report.about["task"] == "regression"
    if is_regression and report.entries is not None:
        return report.entries[row]
    return str(report.labels[row])


def _text(label):
    """A label, or a number without marks of thousands: a target and its prediction."""
    if isinstance(label, (float, np.floating)):
        return number_text(label, grouped=False)
    return str(label)


def most_wrong(fraction_listed, error_rate=0.05):
    """Bound of the fraction of a list that is wrong, if that many labels of all are.

    >>> most_wrong(0.25)
    0.2
    """
    if not fraction_listed:
        return 0.0
    return min(1.0, error_rate / fraction_listed)
