"""The page of a report: what the template shows."""

import base64
from collections import Counter
from hashlib import sha256
from importlib.resources import files

import numpy as np

from .._utils.optional import needed

_MOST_CONFUSED = 8  # pairs of label and suggestion that the page counts
_MOST_GROUPS = 50  # groups of duplicates that the page shows


def page(report):
    """The HTML text of a report. Its policy lets nothing load, and no script run but its own."""
    jinja2 = needed("jinja2", "to_html")
    source, style, script = (
        (files("skvalue.review") / f"report.{kind}").read_text(encoding="utf-8")
        for kind in ("html.jinja", "css", "js")
    )
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    shown = {**_context(report), "policy": policy, "style": style, "script": script}
    return template.from_string(source).render(**shown)


def _hash(text):
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _context(report):
    """The names of the template."""
    rows = {row: i for i, row in enumerate(report.rows["row"])}
    place = {row: i + 1 for i, row in enumerate(report.listed.tolist())}
    shown = [_entry(report, row, i, place) for row, i in rows.items() if row in place]
    shown = sorted(shown, key=lambda entry: entry["rank"])
    pairs = Counter(
        (str(report.labels[row]), str(report.suggestions[row])) for row in report.listed.tolist()
    )
    return {
        "about": report.about,
        "report": report,
        "said": report.statement,
        "shown": shown,
        "labels": sorted({entry["label"] for entry in shown}),
        "pairs": pairs.most_common(_MOST_CONFUSED) if report.about["task"] != "regression" else [],
        "conflicts": [
            [_mention(report, row) for row in group.tolist()]
            for group in report.conflicts[:_MOST_GROUPS]
        ],
        "n_classes": len(np.unique(report.labels)),
        "n_wrong": sum(report.verdicts.values()),
    }


def _entry(report, row, i, place):
    """What the page says on a row of the list; `i` is its place in `report.rows`."""
    columns, said = report.rows, report.statement
    opinions = {
        name: columns[name][i]
        for name in ("forest", "logistic", "ridge", "neighbors", "influence")
        if name in columns and columns[name][i] is not None
    }
    return {
        **_mention(report, row),
        "rank": place[row],
        "suggestion": _text(report.suggestions[row]),
        "value": float(report.values[row]),
        "probability": columns["probability"][i] if "probability" in columns else None,
        "opinions": opinions,
        "review": row in set(report.to_review.tolist()),
        "verdict": report.verdicts.get(row),
        "q": None if said is None else float(said.q_values[row]),
        "named": said is not None and bool(said.label_error[row]),
        **{
            name: [_mention(report, other) for other in columns.get(name, [[]] * (i + 1))[i]]
            for name in ("supporters", "opponents")
        },
    }


def _mention(report, row):
    """Number, label and contents of a row."""
    return {"row": row, "label": _text(report.labels[row]), "content": report.contents.get(row)}


def _text(label):
    return f"{label:.4g}" if isinstance(label, (float, np.floating)) else str(label)
