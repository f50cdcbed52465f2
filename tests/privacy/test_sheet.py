"""The sheet of a privacy report: the same facts as a page and as text, true of the
fit."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skvalue import TKNNShapleyValuer
from skvalue.privacy import GaussianEvent, LaplaceEvent, PrivacyReport, make_report

FACTS = {"protects": "the rows", "against": "every <reader>"}


def report_of(epsilon=1.0, delta=1e-5, relation="replace", notion="central", **options):
    given = {"noise": "Gaussian noise", **FACTS, **options}
    return PrivacyReport(notion, "row", relation, epsilon, delta, **given)


def limit_in(report):
    return float(
        re.search(r"ROC curve of at most ([\d.]+\d)", report.to_text()).group(1)
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01, 0.5])
@pytest.mark.parametrize("relation", ["replace", "null", "add_remove"])
def test_limit_is_the_area_of_the_trade_off(epsilon, delta, relation):
    """The area above the smallest errors that (epsilon, delta) allows, on a grid."""
    size, loss = epsilon, delta
    if relation != "replace":
        size, loss = 2 * epsilon, (1 + np.exp(epsilon)) * delta
    alarms = np.linspace(0, 1, 400_001)
    missed = np.maximum(0, 1 - loss - np.exp(size) * alarms)
    missed = np.maximum(missed, np.exp(-size) * (1 - loss - alarms))
    expected = 1 - np.trapezoid(missed, alarms)
    assert limit_in(report_of(epsilon, delta, relation)) == pytest.approx(
        expected, abs=6e-4
    )


def test_limit_of_randomized_response_is_reached():
    right = np.e / (
        1 + np.e
    )  # of an answer that is e times as probable under one data set
    assert limit_in(report_of(1.0, 0.0)) == pytest.approx(right, abs=6e-4)


def test_gaussian_noise_has_its_smaller_limit():
    event = GaussianEvent(scale=4.0, sensitivity=1.0)
    report = make_report(event, 1e-5, notion="central", unit="row", **FACTS)
    assert limit_in(report) == pytest.approx(report.detection_ceiling, abs=6e-4)


@pytest.mark.parametrize(
    ("epsilon", "says"),
    [(0.5, "learns little"), (2.0, "may learn something"), (9.0, "may learn much")],
)
def test_first_sentence_is_true_of_epsilon(epsilon, says):
    report = report_of(epsilon)
    assert says in report.to_text().split("\n")[0]
    assert report.guarantee in report.to_text().split("\n")[0]


@pytest.mark.parametrize(
    "void", [{"seeded": True}, {"void": "bounds were read off the data"}]
)
def test_void_guarantee_is_said_first(void):
    report = report_of(**void)
    assert report.guarantee is None
    assert report.to_text().startswith("NO PRIVACY IS GUARANTEED")
    assert 'class="first void">NO PRIVACY' in report.to_html()


def test_delta_is_compared_with_the_number_of_rows():
    assert (
        "at most 100 rows, 1 / (10 delta). WARNING" in report_of(delta=1e-3).to_text()
    )
    assert "WARNING" not in report_of(delta=0.0).to_text()


@pytest.mark.parametrize("notion", ["central", "joint", "local"])
def test_page_and_text_have_the_same_facts(notion):
    options = {
        "not_protected": ("the <b>labels</b>",),
        "assumptions": ("public scales", "no copies"),
    }
    report = report_of(notion=notion, **options)
    page, text = report.to_html(), report.to_text()
    assert page.count('type="checkbox"') == text.count("[ ] ") == 2
    assert "&lt;b&gt;labels" in page
    assert "<b>" not in page
    assert "default-src 'none'" in page
    assert not re.search("(src|href)=", page)
    shown = report._repr_html_()
    assert shown in page
    for line in text.splitlines():
        fact = re.sub(r"^(\[ \]|-) ", "", line)
        assert fact.replace("<", "&lt;").replace(">", "&gt;") in page


def test_private_fits_have_a_sheet():
    X, y = load_iris(return_X_y=True)
    valuer = TKNNShapleyValuer(radius=0.1, epsilon=1.0, delta=1e-4)
    report = valuer.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2]).privacy_
    for fact in (report.protects, *report.not_protected, *report.assumptions):
        assert fact[1:].rstrip(".") in report.to_text()
    laplace = make_report(
        LaplaceEvent(scale=1.0), 0, notion="local", unit="party", **FACTS
    )
    assert "Delta" not in laplace.to_text()
