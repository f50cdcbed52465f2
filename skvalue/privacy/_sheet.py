"""A privacy report for readers who know no mathematics, as a page and as text."""

import math
from html import escape
from typing import NamedTuple

# Who sees what, by notion.
_SEES = {
    "central": "A trusted curator sees the raw data. All others see only noisy "
    "results.",
    "joint": "A trusted curator sees the raw data. Each owner sees results about its "
    "own data.",
    "local": "Nothing but noisy numbers leaves a party: no reader has to be trusted.",
}

# Up to which AUROC of an attack, what a reader may learn.
_LEARNS = [
    (0.75, "learns little about any single {unit}"),
    (0.95, "may learn something about a single {unit}, within the limits below"),
    (1.0, "may learn much about a single {unit}: epsilon is large"),
]

_STYLE = """
.skvalue-sheet {font: 16px/1.5 system-ui, sans-serif; max-width: 42em; margin: 1em auto}
.skvalue-sheet h2 {font-size: 1.05em; margin: 1.2em 0 .2em}
.skvalue-sheet .first {border-left: 4px solid #3d8361; padding-left: .8em}
.skvalue-sheet .void {border-color: #d1495b}
.skvalue-sheet td {padding: .1em .8em; text-align: right}
.skvalue-sheet ul {margin: .2em 0; padding-left: 1.2em}
.skvalue-sheet ul.ticks {list-style: none; padding-left: 0}
"""


def attack_limit(epsilon, delta, n_steps=1):
    """Largest AUROC of telling neighbours apart under (epsilon, delta).

    The trade-off of errors of a test is at least ``max(0, 1 - delta - e^epsilon a,
    e^-epsilon (1 - delta - a))`` at the false alarm rate a (Kairouz et al., 2015); the
    area above it is the limit, whatever the noise. Two steps, as for a replacement
    under "add_remove", are (2 epsilon, (1 + e^epsilon) delta).
    """
    if n_steps == 2:
        delta = (1 + math.exp(min(epsilon, 700))) * delta
        epsilon = 2 * epsilon
    if delta >= 1:
        return 1.0

    # The area below two lines of slopes -e^epsilon and -e^-epsilon, which meet.
    growth = math.exp(min(epsilon, 700))
    corner = (1 - delta) / (1 + growth)
    left_area = (1 - delta) * corner - growth * corner**2 / 2
    right_area = (1 - delta - corner) ** 2 / (2 * growth)
    return 1 - left_area - right_area


class _Section(NamedTuple):
    """A heading, empty for the first section, and its sentences."""

    heading: str
    lines: list
    is_checklist: bool = False


def sections(report):
    """The facts of a report, as a list of `_Section`."""
    n_steps = 1 if report.relation == "replace" else 2
    limit = attack_limit(report.epsilon, report.delta, n_steps)
    limit = min(limit, report.detection_ceiling or 1.0)
    seen = [
        _SEES[report.notion],
        f"Protected: {report.protects}, from {report.against}",
    ]
    not_protected = report.not_protected or ["Nothing else is known."]
    all_sections = [
        _Section("", [_summary(report, limit)]),
        _Section("Who sees what", seen),
        _Section("What is not protected", not_protected),
        _Section("What the best attack can do", [_attack(report, limit)]),
        _Section("Epsilon and delta", _sizes(report)),
        _Section("Noise", [report.noise]),
        _Section("To be checked by you", report.assumptions, is_checklist=True),
    ]
    return [
        section._replace(lines=[_sentence(line) for line in section.lines])
        for section in all_sections
        if section.lines
    ]


def _summary(report, limit):
    if report.guarantee is None:
        reason = report.void or "the noise was drawn from a seed and can be subtracted"
        return f"NO PRIVACY IS GUARANTEED: {reason}. What follows would hold otherwise."
    learns = next(words for largest, words in _LEARNS if limit <= largest)
    return (
        f"Whoever sees the released results {learns.format(unit=report.unit)}. This is "
        f"{report.guarantee}."
    )


def _attack(report, limit):
    return (
        "An attacker sees two results, one of the data as they are and one after a "
        f"{report.unit} was replaced, and must say which is which. The best attack is "
        f"right in at most {100 * limit:.0f} of 100 cases; guessing is right in 50 (an "
        f"area under the ROC curve of at most {limit:.3f})."
    )


def _sizes(report):
    """What epsilon and delta say."""
    unit = report.unit
    factor = math.exp(min(report.epsilon, 700))
    sentences = [
        f"Epsilon is {report.epsilon:.6g}: any conclusion from the results is at most "
        f"{factor:.3g} times as probable with a {unit} as without it."
    ]
    if report.delta:
        sentences.append(
            f"Delta is {report.delta:.6g}, the probability that this fails: "
            f"{_what_delta_allows(report.delta, unit)}"
        )
    return sentences


def _what_delta_allows(delta, unit):
    """For how many units a delta is small enough, as the end of a sentence."""
    n_units = int(0.1 / delta)
    if n_units < 2:
        return (
            f"too large for any number of {unit}s. WARNING: choose a smaller delta, "
            f"below one over ten times the number of {unit}s."
        )
    return (
        f"small enough for at most {n_units:,} {unit}s, 1 / (10 delta). WARNING: with "
        f"more of them choose a smaller delta; at {10 * n_units:,} a release that "
        f"shows one {unit} as it is would have the same guarantee."
    )


def as_text(report):
    """The sheet as plain text."""
    blocks = []
    for section in sections(report):
        if not section.heading:
            blocks.append("\n".join(section.lines))
            continue
        mark = "[ ] " if section.is_checklist else "- "
        lines = [f"{mark}{line}" for line in section.lines]
        blocks.append("\n".join([section.heading, *lines]))
    return "\n\n".join(blocks) + "\n"


def as_html(report, page=True):
    """The sheet as an element, or as a page of its own that loads nothing."""
    blocks = []
    for section in sections(report):
        if section.heading:
            blocks.append(_list_html(section))
        else:
            kind = "first" if report.guarantee else "first void"
            blocks.append(f'<p class="{kind}">{escape(section.lines[0])}</p>')
    sheet = f'<div class="skvalue-sheet"><style>{_STYLE}</style>{"".join(blocks)}</div>'
    if not page:
        return sheet
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<title>Privacy of this release</title></head>"
        f"<body>{sheet}</body></html>\n"
    )


def _list_html(section):
    """A section with its sentences as a list, with boxes to tick in a checklist."""
    box = '<input type="checkbox"> ' if section.is_checklist else ""
    kind = ' class="ticks"' if section.is_checklist else ""
    items = [f"<li><label>{box}{escape(line)}</label></li>" for line in section.lines]
    return f"<h2>{escape(section.heading)}</h2><ul{kind}>{''.join(items)}</ul>"


def _sentence(text):
    """The text with a capital letter and a full stop."""
    end = "" if text.endswith(".") else "."
    return f"{text[:1].upper()}{text[1:]}{end}"
