"""A privacy report for readers who know no mathematics, as a page and as text."""

import math
from html import escape

_SEES = {
    "central": "A trusted curator sees the raw data. All others see only noisy results.",
    "joint": "A trusted curator sees the raw data. Each owner sees results about its own data.",
    "local": "Nothing but noisy numbers leaves a party: no reader has to be trusted.",
}

# Largest AUROC of an attack -> what a reader may learn.
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


def attack_limit(epsilon, delta, steps=1):
    """Largest AUROC of telling neighbours apart under (epsilon, delta), whatever the
    noise.

    The trade-off of errors of a test is at least ``max(0, 1 - delta - e^epsilon a,
    e^-epsilon (1 - delta - a))`` at the false alarm rate a (Kairouz et al., 2015); the
    area above it is the limit. Two steps, as for a replacement under "add_remove", are
    (2 epsilon, (1 + e^epsilon) delta).
    """
    if steps == 2:
        epsilon, delta = 2 * epsilon, (1 + math.exp(min(epsilon, 700))) * delta
    if delta >= 1:
        return 1.0
    growth = math.exp(min(epsilon, 700))
    corner = (1 - delta) / (1 + growth)
    # Both halves below the two lines are the same: their slopes are -e^epsilon and
    # -e^-epsilon.
    left = (1 - delta) * corner - growth * corner**2 / 2
    right = (1 - delta - corner) ** 2 / (2 * growth)
    return 1 - left - right


def sections(report):
    """The facts of a report: pairs of a heading and sentences, the first without a
    heading."""
    unit = report.unit
    limit = attack_limit(
        report.epsilon, report.delta, 1 if report.relation == "replace" else 2
    )
    limit = min(limit, report.detection_ceiling or 1.0)
    learns = next(words for most, words in _LEARNS if limit <= most).format(unit=unit)
    first = f"Whoever sees the released results {learns}. This is {report.guarantee}."
    if report.guarantee is None:
        reason = report.void or "the noise was drawn from a seed and can be subtracted"
        first = (
            f"NO PRIVACY IS GUARANTEED: {reason}. What follows would hold otherwise."
        )
    attack = (
        f"An attacker sees two results, one of the data as they are and one after a {unit} was "
        f"replaced, and must say which is which. The best attack is right in at most "
        f"{100 * limit:.0f} of 100 cases; guessing is right in 50 (an area under the ROC curve of "
        f"at most {limit:.3f})."
    )
    sizes = [
        f"Epsilon is {report.epsilon:.6g}: any conclusion from the results is at most "
        f"{math.exp(min(report.epsilon, 700)):.3g} times as probable with a {unit} as without it."
    ]
    if report.delta:
        most = int(0.1 / report.delta)
        sizes.append(
            f"Delta is {report.delta:.6g}, the probability that this fails: small enough for at "
            f"most {most:,} {unit}s, 1 / (10 delta). WARNING: with more of them choose a smaller "
            f"delta; at {10 * most:,} a release that shows one {unit} as it is would have the same "
            "guarantee."
        )
    seen = [
        _SEES[report.notion],
        f"Protected: {report.protects}, from {report.against}",
    ]
    parts = [
        ("", [first]),
        ("Who sees what", seen),
        ("What is not protected", report.not_protected or ["Nothing else is known."]),
        ("What the best attack can do", [attack]),
        ("Epsilon and delta", sizes),
        ("Noise", [report.noise]),
        ("To be checked by you", report.assumptions),
    ]
    return [
        (heading, [_sentence(line) for line in lines])
        for heading, lines in parts
        if lines
    ]


def as_text(report):
    """The sheet as plain text."""
    blocks = []
    for heading, lines in sections(report):
        mark = "[ ] " if heading.startswith("To be") else "- " if heading else ""
        blocks.append(
            "\n".join([heading] * bool(heading) + [mark + line for line in lines])
        )
    return "\n\n".join(blocks) + "\n"


def as_html(report, page=True):
    """The sheet as an element, or as a page of its own that loads nothing."""
    blocks = []
    for heading, lines in sections(report):
        if not heading:
            kind = "first" if report.guarantee else "first void"
            blocks.append(f'<p class="{kind}">{escape(lines[0])}</p>')
            continue
        tick = heading.startswith("To be")
        box = '<input type="checkbox"> ' if tick else ""
        items = "".join(
            f"<li><label>{box}{escape(line)}</label></li>" for line in lines
        )
        kind = ' class="ticks"' if tick else ""
        blocks.append(f"<h2>{escape(heading)}</h2><ul{kind}>{items}</ul>")
    sheet = f'<div class="skvalue-sheet"><style>{_STYLE}</style>{"".join(blocks)}</div>'
    if not page:
        return sheet
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width"><meta name="color-scheme" content="light dark"><meta '
        f'http-equiv="Content-Security-Policy" content="{policy}"><title>Privacy of this release'
        f"</title></head><body>{sheet}</body></html>\n"
    )


def _sentence(text):
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")
