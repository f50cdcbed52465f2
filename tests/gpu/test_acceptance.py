"""The command that measures a card, on the simulated one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("faiss")
pytest.importorskip("kornia")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_command_writes_a_table_of_the_simulated_card(tmp_path):
    command = [sys.executable, "tests/gpu/acceptance.py", "--no-tests", "--quick"]
    result = subprocess.run(
        [*command, "--out", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]

    (path,) = tmp_path.glob("*.json")
    report = json.loads(path.read_text(encoding="utf-8"))
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert report["card"] in page
    neighbours = report["tables"]["Neighbours"]
    networks = report["tables"]["Networks"]
    assert not any("refused" in line for line in neighbours + networks)
    assert {line["engine"] for line in neighbours} == {"native", "torch", "faiss"}
    for line in neighbours + networks:
        assert line.get("largest_error", 0) <= 1e-9
        assert (line["device"] == "cuda") == ("transfers" in line)
        assert line["method"] in page
    if report["is_simulated"]:
        assert "its times say nothing" in page
