"""The examples of the documentation run. `test_pages.py` builds the pages."""

import doctest
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
BUILT = {"_build", "_templates", "auto_examples", "generated"}
PAGES = sorted(
    page for page in DOC.rglob("*.rst") if not BUILT & set(page.relative_to(DOC).parts)
)


FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOC)))
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What follows the title of a card is pasted by itself, so that each card has its
    # own names.
    for card in page.read_text(encoding="utf-8").split(".. grid-item-card:: "):
        test = doctest.DocTestParser().get_doctest(card, {}, page.name, str(page), 0)
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
        assert result.failed == 0, "What failed is printed above."


# Lists of what papers have, without code.
OF_PAPERS = {"after_the_papers", "not_here"}
GUIDE = [
    page
    for page in PAGES
    if page.parent.name == "user_guide" and page.stem not in {"index", *OF_PAPERS}
]


class Opening(NamedTuple):
    """What stands between the title of a page and its first block of code."""

    sentences: list
    blocks: list
    code: str


def opening(text):
    _, body = re.split(r"^===+\n", text, maxsplit=1, flags=re.MULTILINE)
    blocks = re.split(r"\n\n+", body.strip())
    is_code = [block.startswith((">>> ", ".. code-block")) for block in blocks]
    i = is_code.index(True)
    sentences = re.split(r"(?<=[.?!])\s+", " ".join(blocks[:i]))
    return Opening(list(filter(None, sentences)), blocks[:i], blocks[i])


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_a_page_opens_with_one_to_three_sentences_and_an_example(page):
    sentences, blocks, _ = opening(page.read_text(encoding="utf-8"))
    assert 1 <= len(sentences) <= 3, "\n".join(sentences)
    for block in blocks:
        assert block[0].isalnum() or block.startswith(":"), f"Not prose: {block}"
    assert sentences[-1].endswith((".", ":"))


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_code_of_a_page_does_not_scroll(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    wide = [
        line for line in lines if re.match(r" *(>>>|\.\.\.) ", line) and len(line) > 84
    ]
    assert not wide, "\n".join(wide)


def test_an_opening_is_read_up_to_the_code():
    text = "Page\n====\n\nOne.\nTwo `a.b` here.\n\n>>> 1\n1\n\nThree.\n"
    sentences, blocks, code = opening(text)
    assert sentences == ["One.", "Two `a.b` here."]
    assert len(blocks) == 1
    assert code.startswith(">>> 1")


def test_a_page_without_an_example_is_found():
    with pytest.raises(ValueError, match="not in list"):
        opening("Page\n====\n\nNo example.\n")


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_code_of_the_readme_runs():
    code = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert len(code) == 2
    assert len([line for line in code[0].splitlines() if line]) <= 5
    names = {}
    for block in code:
        exec(block, names)
    assert names["values"].shape == (1797,)
    assert names["search"].best_params_ == {"valuefilteredclassifier__drop": 0.2}
    unfiltered = names["pipeline"].set_params(valuefilteredclassifier__drop=0)
    unfiltered.fit(names["X"], names["y"])
    accuracies = [
        names["accuracy"],
        unfiltered.score(names["X_test"], names["y_test"]),
    ]
    stated = [float(percent) / 100 for percent in re.findall(r"([\d.]+) %", README)]
    assert accuracies == pytest.approx(stated[:2], abs=0.006)


def test_commands_of_the_readme_exist():
    first, tests = re.findall(r"^    (pip install .*)$", README, re.MULTILINE)
    assert (ROOT / first.split()[-1]).is_file()
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert tests in script.replace("--quiet --disable-pip-version-check ", "")


def test_the_table_of_the_readme_is_short():
    table = [line for line in README.splitlines() if line.startswith("| `")]
    assert 5 < len(table) <= 12
    for line in table:
        _, *cells = line.strip("| ").split(" | ")
        assert max(map(len, cells)) <= 60, line


def test_links_of_the_readme_exist():
    links = re.findall(r"\]\(([^)]*)\)", README)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []
