"""Reports from elsewhere, whose fields may hold anything."""

import json

import numpy as np
import pytest

from skvalue.audit import AuditReport

# Changed fields, and the name in the message.
CHANGED = [
    ({"format": "other"}, "report"),
    ({"values": [[1.0]]}, "values"),
    ({"labels": ["a"]}, "labels"),
    ({"listed": [150]}, "listed"),
    ({"to_review": [True]}, "to_review"),
    ({"conflicts": [[-1]]}, "conflicts"),
    ({"verdicts": {"3": 1}}, "verdicts"),
    ({"verdicts": {"x": True}}, "verdicts"),
    ({"about": {}}, "about"),
    ({"rows": {"row": [0], "forest": []}}, "rows"),
    ({"rows": {"row": [0], "forest": ["<b>"]}}, "forest"),
    ({"rows": {"row": [0], "opponents": [["x"]]}}, "opponents"),
    ({"contents": []}, "contents"),
    ({"more": 1}, "report"),
    ({"duplicates": [[1]]}, "duplicates"),
    ({"similar": [[1, 2, 3]]}, "similar"),
    ({"similar": [[0, 0]]}, "similar"),
    ({"worth": {}}, "worth"),
    ({"said": {"read": [1]}}, "read"),
    ({"findings": [{"kind": "leak"}]}, "findings"),
    ({"overview": [{"column": 3}]}, "overview"),
]


@pytest.mark.parametrize(("change", "name"), CHANGED)
def test_a_wrong_field_is_refused_by_its_name(iris_report, change, name):
    record = {**json.loads(iris_report.to_json()), **change}
    with pytest.raises(ValueError, match=f"{name}.* must"):
        AuditReport.from_json(json.dumps(record))


HOSTILE = [
    {"contents": {"0": "https://example.com/x.png"}, "about": {"kind": "image"}},
    {"contents": {"0": "data:text/html,<script>"}, "about": {"kind": "image"}},
    {
        "contents": {"0": 'data:image/png;base64,"onerror="x'},
        "about": {"kind": "image"},
    },
    {"contents": {"0": 3}},
    {"contents": {"0": ["a"]}},
    {"contents": {"0": {"a": 3}}},
    {"contents": {"0": {"a": "x" * 200_000}}},
    {"conflicts": [[]]},
    {"conflicts": [[3]]},
    {"conflicts": [[1, 2], [2, 3]]},
    {"conflicts": 3},
    {"listed": [1, 1]},
    {"notes": [3]},
    {"verdicts": {"9" * 400: True}},
    {"values": [10**400] * 150},
    {"values": ["x" * 3_000_000] + [0.5] * 149},
    {"labels": ["x" * 3_000_000] + ["a"] * 149},
    {"labels": ["a"] * 149 + [1]},
    {"rows": {"row": [0], "forest": [10**400]}},
    {"rows": {"row": [0, 0]}},
    {"rows": {"row": [0], "opponents": [list(range(150))]}},
    {"rows": {"row": [0], "more": [1]}},
    {"about": {"kind": "image"}},
    {"about": {"fdr": -1}},
    {"about": {"confidence": 5}},
    {"about": {"n_samples": 1}},
    {"about": {"seconds": "1"}},
    {"about": {"fdr": 1e308}},
    {"about": {"n_verdicts": 0}},
    {"about": {"task": ["classification"]}},
]  # fmt: skip


@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: repr(change)[:50])
def test_a_hostile_field_is_refused_in_a_sentence(iris_report, change):
    record = json.loads(iris_report.to_json())
    about = {**record["about"], **change.get("about", {})}
    record = {**record, **change, "about": about}
    with pytest.raises(ValueError, match=r" must .*\. Got "):
        AuditReport.from_json(json.dumps(record))


def test_infinite_values_are_refused(iris_report):
    text = iris_report.to_json().replace('"values": [', '"values": [1e999, ', 1)
    with pytest.raises(ValueError, match="values must be a number strictly between"):
        AuditReport.from_json(text)


ENTRIES = [
    None, True, -1, 10**30, 1e308, "<script>", "", [], {}, [[]], [{}], {"": []}, ["x"],
    [0],
]  # fmt: skip


def mutate(record, rng):
    """Put another entry into a random place of a record."""
    place = record
    key = rng.choice(list(record))
    while rng.random() < 0.7 and isinstance(place[key], dict | list) and place[key]:
        place = place[key]
        if isinstance(place, dict):
            key = rng.choice(list(place))
        else:
            key = rng.integers(len(place))
    place[key] = ENTRIES[rng.integers(len(ENTRIES))]


@pytest.mark.slow
def test_mutated_reports_are_refused_or_shown(iris_report, iris_reviewed):
    """Whatever a field holds: a page that escapes it, or a sentence."""
    rng = np.random.default_rng(0)
    texts = [iris_report.to_json(), iris_reviewed.to_json()]
    for _ in range(200):
        record = json.loads(texts[rng.integers(2)])
        mutate(record, rng)
        try:
            report = AuditReport.from_json(json.dumps(record))
        except ValueError:
            continue
        html = report.to_html()
        assert html.count("<script") == 1
        report.to_csv()
        report.to_label_studio()
        repr(report)
