"""The page of a report: one file, escaped, that works without a network."""

import re


def test_the_page_is_written_to_a_file(iris_report, tmp_path):
    iris_report.to_html(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert html == iris_report.to_html()


def test_the_page_escapes_what_it_shows(iris_report):
    html = iris_report.to_html()
    assert "<title>Iris &amp; more" in html
    assert "virginica &lt;i&gt;" in html
    assert "<i>virginica" not in html


def test_the_page_loads_nothing(iris_report):
    html = iris_report.to_html()
    assert not re.findall(r"(src|href|url|@import)\W+(https?:)?//", html)
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy[1].startswith("default-src &#39;none&#39;; img-src data:; ")
    assert "unsafe" not in policy[1]


def test_before_verdicts_the_page_has_no_error_rate(iris_report):
    html = iris_report.to_html()
    assert "That is no error rate: even if 5&nbsp;% of all labels are wrong" in html
    assert "% of rows" not in html
    assert len(re.findall("<tr data-rank", html)) == len(iris_report.listed)


def test_after_verdicts_the_page_has_the_rate_and_the_verdicts(iris_reviewed):
    html = iris_reviewed.to_html()
    assert "of rows are wrong and listed" in html
    n_wrong = sum(iris_reviewed.verdicts.values())
    assert html.count('" data-say="wrong">') == n_wrong


def test_a_notebook_shows_the_page_in_a_frame(iris_report):
    html = iris_report._repr_html_()
    assert html.startswith("<iframe")
    assert "<title>" not in html  # the page is an attribute of the frame
