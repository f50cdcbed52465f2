"""The sheet of a privacy report: the same facts as a page and as text."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skvalue import TKNNShapleyValuer
from skvalue.privacy import GaussianEvent, LaplaceEvent, PrivacyReport, make_report

FACTS = {"protects": "the rows", "against": "every <reader>"}


def report_of(epsilon=1.0, delta=1e-5, relation="replace", notion="central", **options):
    return PrivacyReport(
        **{
            "notion": notion,
            "unit": "row",
            "relation": relation,
            "epsilon": epsilon,
            "delta": delta,
            "noise": "Gaussian noise",
            **FACTS,
            **options,
        }
    )


def limit_in(report):
    number = re.search(r"ROC curve of at most ([\d.]+\d)", report.to_text())
    return float(number.group(1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01, 0.5])
@pytest.mark.parametrize("relation", ["replace", "null", "add_remove"])
def test_limit_is_the_area_of_the_trade_off(epsilon, delta, relation):
    """The area above the smallest errors that (epsilon, delta) allows, on a grid."""
    limit = limit_in(report_of(epsilon, delta, relation))
    if relation != "replace":  # a replacement is two steps
        delta = (1 + np.exp(epsilon)) * delta
        epsilon = 2 * epsilon
    alarm_rates = np.linspace(0, 1, 400_001)
    miss_rates = np.maximum(0, 1 - delta - np.exp(epsilon) * alarm_rates)
    miss_rates = np.maximum(miss_rates, np.exp(-epsilon) * (1 - delta - alarm_rates))
    expected = 1 - np.trapezoid(miss_rates, alarm_rates)
    assert limit == pytest.approx(expected, abs=6e-4)


def test_limit_of_randomized_response_is_reached():
    # One of two answers is e times as probable under one data set.
    expected = np.e / (1 + np.e)
    assert limit_in(report_of(1.0, 0.0)) == pytest.approx(expected, abs=6e-4)


def test_gaussian_noise_has_its_smaller_limit():
    event = GaussianEvent(scale=4.0, sensitivity=1.0)
    report = make_report(event, 1e-5, notion="central", unit="row", **FACTS)
    assert limit_in(report) == pytest.approx(report.detection_ceiling, abs=6e-4)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(0.5, "learns little"), (2.0, "may learn something"), (9.0, "may learn much")],
)
def test_the_first_sentence_is_true_of_epsilon(epsilon, words):
    report = report_of(epsilon)
    first_line = report.to_text().split("\n")[0]
    assert words in first_line
    assert report.guarantee in first_line


@pytest.mark.parametrize(
    "void", [{"seeded": True}, {"void": "bounds were read off the data"}]
)
def test_a_void_guarantee_is_stated_first(void):
    report = report_of(**void)
    assert report.guarantee is None
    assert report.to_text().startswith("NO PRIVACY IS GUARANTEED")
    assert 'class="first void">NO PRIVACY' in report.to_html()


def test_delta_is_compared_with_the_number_of_rows():
    text = report_of(delta=1e-3).to_text()
    assert "at most 100 rows, 1 / (10 delta). WARNING" in text
    assert "WARNING" not in report_of(delta=0.0).to_text()


@pytest.mark.parametrize("delta", [0.06, 0.1, 0.9])
def test_a_delta_that_is_too_large_for_two_rows_is_called_so(delta):
    text = report_of(delta=delta).to_text()
    assert "too large for any number of rows. WARNING" in text


@pytest.mark.parametrize("notion", ["central", "joint", "local"])
def test_page_and_text_have_the_same_facts(notion):
    options = {
        "not_protected": ("the <b>labels</b>",),
        "assumptions": ("public scales", "no copies"),
    }
    report = report_of(notion=notion, **options)
    page = report.to_html()
    text = report.to_text()
    assert page.count('type="checkbox"') == text.count("[ ] ") == 2
    assert "&lt;b&gt;labels" in page
    assert "<b>" not in page
    assert "default-src 'none'" in page
    assert not re.search("(src|href)=", page)
    assert report._repr_html_() in page
    for line in text.splitlines():
        fact = re.sub(r"^(\[ \]|-) ", "", line)
        assert fact.replace("<", "&lt;").replace(">", "&gt;") in page


def test_private_fits_have_a_sheet():
    X, y = load_iris(return_X_y=True)
    valuer = TKNNShapleyValuer(radius=0.1, epsilon=1.0, delta=1e-4)
    report = valuer.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2]).privacy_
    for fact in (report.protects, *report.not_protected, *report.assumptions):
        assert fact[1:].rstrip(".") in report.to_text()


def test_a_guarantee_without_delta_has_no_sentence_about_it():
    laplace = make_report(
        LaplaceEvent(scale=1.0), 0, notion="local", unit="party", **FACTS
    )
    assert "Delta" not in laplace.to_text()
