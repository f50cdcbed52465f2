"""The page of a report: what the template shows."""

import base64
import os
from collections import Counter
from functools import cache
from hashlib import sha256
from importlib.resources import files as package_files

import numpy as np

from .._utils.optional import import_optional
from .._utils.text import number_text
from ._contents import bars_path
from .checks import rows_shown

_MOST_CONFUSED = 8  # pairs of label and suggestion that the page counts
_MOST_GROUPS = 50  # groups of equal or nearly equal rows that the page shows
_MOST_ROWS = 10  # rows of such a group
_MOST_FIXED = 5000  # rows of which one button changes the label
_OPINIONS = ("forest", "logistic", "ridge", "neighbors")
_SECTIONS = {  # of the page -> kinds of findings; other kinds are of columns
    "target": ("missing labels", "spelling", "rare labels", "weak model"),
    "equal": ("equal rows", "conflicts", "nearly equal rows"),
    "validation": ("copies in validation", "conflicts in validation"),
    "rows": ("far rows", "empty rows", "improbable entries"),
    "order": ("order of labels", "order of rows"),
}


def page(report, files):
    """The HTML text of a report. Its policy lets nothing load, and no script run but
    its own."""
    template, style, script = _files()
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    shown = {**_context(report), "policy": policy, "style": style, "script": script}
    return template.render(**shown, files=_names(report, files))


@cache
def _files():
    """The template, compiled once, and the texts of style and script."""
    jinja2 = import_optional("jinja2", "to_html")
    source, style, script = (
        (package_files("skvalue.audit") / f"report.{kind}").read_text(encoding="utf-8")
        for kind in ("html.jinja", "css", "js")
    )
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source), style, script


def _hash(text):
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _names(report, files):
    """Names of files for the commands of the page; words of more than one part are
    quoted."""
    names = {
        name: os.path.basename(files.get(name) or "") for name in ("table", "report")
    }
    stem = os.path.splitext(names["table"] or report.about["title"])[0]
    names |= {"corrections": f"{stem}.corrections.csv", "fixed": f"{stem}.fixed.csv"}
    names["page"] = f"{stem}.html"
    return {name: f'"{file}"' if " " in file else file for name, file in names.items()}


def _key(report):
    """What the browser keeps verdicts under: the same for the same table and list
    only."""
    parts = (report.about["title"], report.about["target"], report.labels.tolist())
    text = repr((*parts, report.numbers.tolist(), report.listed.tolist()))
    return "skvalue-" + sha256(text.encode()).hexdigest()[:32]


def _context(report):
    """The names of the template."""
    pairs, classes, shown = Counter(), [], _listed(report)
    differ = {row for group in report.conflicts for row in group.tolist()}
    agreeing = [
        group for group in report.duplicates if not differ & set(group.tolist())
    ]
    if report.about["task"] != "regression":
        both = ((report.labels[row], report.suggestions[row]) for row in report.listed)
        pairs = Counter((str(label), str(suggestion)) for label, suggestion in both)
        classes = sorted(set(map(_text, report.labels.tolist())))
    return {
        "about": report.about,
        "report": report,
        "key": _key(report),
        "said": report.statement,
        "shown": shown,
        "labels": sorted({entry["label"] for entry in shown}),
        "pairs": pairs.most_common(_MOST_CONFUSED),
        "conflicts": _groups(report, report.conflicts),
        "equal": _groups(report, agreeing),
        "similar": [_differences(pair) for pair in _groups(report, report.similar)],
        "classes": classes,
        "n_wrong": sum(report.verdicts.values()),
        "found": _sections(report),
        "counts": Counter(each.severity for each in report.findings),
        "first": next(
            (f for f in report.findings if f.severity in ("error", "warning")), None
        ),
        "bars_path": bars_path,
        "most_wrong": most_wrong(report.fraction_listed),
        "number_text": number_text,
    }


def _sections(report):
    """Section of the page -> its findings, as it shows them."""
    of_kind = {kind: name for name, kinds in _SECTIONS.items() for kind in kinds}
    found = {name: [] for name in (*_SECTIONS, "columns")}
    for each in report.findings:
        rows, said = rows_shown(each), each.evidence.get("said", ())
        of_row = dict(
            zip((row for row, _ in each.cells), said if isinstance(said, list) else ())
        )
        section = of_kind.get(each.kind, "columns")
        rows = () if section == "equal" else rows  # whose groups the page shows
        shown = [{**_mention(report, row), "said": of_row.get(row)} for row in rows]
        fix = each.fix if len(each.fix) <= _MOST_FIXED else ()
        numbers = [int(report.numbers[row]) for row, _, _ in fix]
        entry = {"finding": each, "shown": shown, "numbers": numbers}
        if fix:
            entry |= {"old": str(report.labels[fix[0][0]]), "new": fix[0][2]}
        found[section].append(entry)
    return found


def _groups(report, groups):
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
    records = (dict(zip(report.rows, cells)) for cells in zip(*report.rows.values()))
    of_row, said = {record["row"]: record for record in records}, report.statement
    to_review, shown = set(report.to_review.tolist()), []
    for rank, row in enumerate(report.listed.tolist(), 1):
        if row not in of_row:
            continue
        record = of_row[row]
        entry = {
            **_mention(report, row),
            "rank": rank,
            "suggestion": _text(report.suggestions[row]),
            "value": float(report.values[row]),
            "probability": record.get("probability"),
            "opinions": {
                name: record[name] for name in _OPINIONS if record.get(name) is not None
            },
            "review": row in to_review,
        }
        if said is not None:
            entry |= {
                "q": float(said.q_values[row]),
                "named": bool(said.label_error[row]),
            }
        for name in ("supporters", "opponents"):
            entry[name] = [_mention(report, other) for other in record.get(name, ())]
        shown.append(entry)
    return shown


def _mention(report, row):
    """Number, label, suggestion, verdict and contents of a row."""
    content, row_id = report.contents.get(row), None
    if isinstance(content, dict):
        row_id = content.get(report.about["id"])
        content = {
            name: cell for name, cell in content.items() if name != report.about["id"]
        }
    return {
        "row": row,
        "number": int(report.numbers[row]),
        "id": row_id,
        "label": _text(report.labels[row]),
        "old": str(report.labels[row]),
        "new": str(report.suggestions[row]),
        "verdict": report.verdicts.get(row),
        "content": content,
    }


def _text(label):
    return number_text(label) if isinstance(label, (float, np.floating)) else str(label)


def most_wrong(fraction_listed, error_rate=0.05):
    """Bound of the fraction of a list that is wrong, if that many labels of the table
    are.

    >>> most_wrong(0.25)
    0.2
    """
    return min(1.0, error_rate / fraction_listed) if fraction_listed else 0.0
