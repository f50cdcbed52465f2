"""From a table to its page, verdicts in a browser, and the corrected table."""

import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest

from skvalue.audit import read_corrections
from skvalue.datasets import flip_labels
from tests.audit.command_line import command

pytest.importorskip("pandas")
pytest.importorskip("jinja2")
BROWSERS = map(shutil.which, ("chromium", "chromium-browser", "chrome"))
CHROMIUM = next(filter(None, BROWSERS), None)

# Five labels are wrong and the sixth is right; after a reload, corrections are saved.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><iframe></iframe><script>
const frame = document.querySelector("iframe");
let loads = 0;
frame.onload = () => {
  const inside = frame.contentDocument, own = frame.contentWindow;
  if (++loads === 1) {
    const wrong = [...inside.querySelectorAll("#list .wrong")].slice(0, 5);
    wrong.forEach((button) => button.click());
    inside.querySelectorAll("#list .right")[5].click();
    setTimeout(() => own.location.reload(), 100);
    return;
  }
  own.URL.createObjectURL = (blob) => {
    blob.text().then((text) => {
      document.body.textContent = text;
      document.body.id = "found";
    });
    return "#";
  };
  own.HTMLAnchorElement.prototype.click = () => {};  // no download
  inside.querySelector("#save").click();
};
frame.src = "page.html";
</script>"""


def encode_table(lines):
    """A table as a German spreadsheet writes it."""
    return ("Größe;Text;Urteil\r\n" + "".join(lines)).encode("cp1252")


def save_corrections(folder):
    """What the page of a folder saves, after the clicks of the probe."""
    (folder / "probe.html").write_text(PROBE, encoding="utf-8")
    words = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--virtual-time-budget=10000",
        "--dump-dom",
        (folder / "probe.html").as_uri(),
    ]
    dom = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
    return unescape(re.search('<body id="found">(.*)</body>', dom, re.DOTALL)[1])


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser Chromium on the PATH")
def test_verdicts_in_the_page_correct_these_fields_alone(tmp_path, capsys):
    rng = np.random.default_rng(0)
    sizes = rng.normal(50, 10, 200).round(1)
    labels = np.where(sizes > 50, "groß", "klein")
    labels, wrong = flip_labels(labels, 0.1, random_state=0)
    lines = [
        f'"{size}";a, b;{label}\r\n'.replace(".", ",")
        for size, label in zip(sizes, labels)
    ]
    table = tmp_path / "alt.csv"
    report = tmp_path / "alt.json"
    corrections = tmp_path / "alt.corrections.csv"
    table.write_bytes(encode_table(lines))
    code = command(
        f"audit {table} --target Urteil --json {report} -o {tmp_path}/page.html "
        "--checks fast"
    )
    assert code == 0
    corrections.write_text(save_corrections(tmp_path), encoding="utf-8")
    assert command(f"fix {table} {corrections} -o {tmp_path}/neu.csv") == 0

    accepted = [each for each in read_corrections(corrections) if each.accept]
    rows = [correction.row - 2 for correction in accepted]
    assert len(rows) == 5
    assert wrong[rows].sum() >= 4
    other = {"groß": "klein", "klein": "groß"}
    for row in rows:
        lines[row] = lines[row].replace(labels[row], other[labels[row]])
    assert (tmp_path / "neu.csv").read_bytes() == encode_table(lines)
    assert command(f"review {report} {corrections}") == 0
    assert "6 rows were looked at; the label of 5 is wrong" in capsys.readouterr().out
