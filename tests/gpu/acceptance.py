"""What a GPU gives: the tests that need one, then a table of times and errors.

    python tests/gpu/acceptance.py [--out doc/benchmarks] [--wheels FOLDER] [--quick]

It needs numpy, pytest, torch >= 2.6 and faiss-gpu >= 1.14.3 (pip install
".[test,gpu]" without faiss-cpu), and no network. Where wheels had to come in parts,
FOLDER has them as NAME.whl.part0, NAME.whl.part1 and so on (split -d -a 1 -b 40M
NAME.whl NAME.whl.part): they are joined and installed first, with whole wheels that are
there.

It writes NAME.json and NAME.md, NAME being that of the card, and exits with 1 if a test
failed or values differ. Without a card it runs small sizes on the simulated one of
tests/simulated_gpu.py, whose times say nothing.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

PACKAGES = ("skvalue", "numpy", "scikit-learn", "torch", "faiss-gpu", "faiss-cpu")
# Rows, validation points, columns.
SIZES = [(n_rows, 1000, d) for n_rows in (50_000, 1_000_000) for d in (32, 512, 2048)]
SMALL_SIZES = [(300, 20, 8)]
# Of largest errors. Of rows behind rank 4,096, near-ties in float32 are ties.
TOLERANCE = 1e-9
TOLERANCES = {"KNN": 4096.0**-2}
# Where a card begins to be faster than the CPU.
CROSSING_SIZES = [
    (n_rows, 200, d) for d in (32, 512) for n_rows in (500, 2000, 10_000, 50_000)
]
SMALL_CROSSING_SIZES = [(50, 10, 8), (200, 10, 8)]
CONSTANT = "GPU_FROM in skvalue/_utils/measured.py"
REPEATS = 3  # of each time


def join_wheels(folder):
    """Join wheels that came in parts; return the paths of all wheels of a folder.

    Raises
    ------
    SystemExit
        If there is no wheel, or a part is missing.
    """
    folder = Path(folder)
    parts = {}
    for path in sorted(folder.glob("*.whl.part*")):
        name, _, number = path.name.rpartition(".part")
        if not number.isdecimal():
            sys.exit(f"{path} must end with the number of a part.")
        parts.setdefault(name, {})[int(number)] = path
    for name, of_wheel in parts.items():
        missing = set(range(max(of_wheel) + 1)) - set(of_wheel)
        if missing:
            sys.exit(f"{folder / name} lacks part{min(missing)}: copy it again.")
        with (folder / name).open("wb") as wheel:
            for _, path in sorted(of_wheel.items()):
                wheel.write(path.read_bytes())

    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"{folder} has no wheel, and no parts of one.")
    for wheel in wheels:
        # The index of a wheel is at its end.
        if not zipfile.is_zipfile(wheel):
            sys.exit(f"{wheel} is no whole wheel: its last part is missing.")
    return wheels


def install(wheels):
    """Install wheels, without a network."""
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps"]
    subprocess.run([*command, *map(str, wheels)], check=True)


def run_tests(has_card):
    """Number of tests that passed, failed and were skipped."""
    chosen = ["-m", "gpu"] if has_card else ["tests/neighbors/test_faiss_gpu.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *chosen]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(result.stdout[-2000:], flush=True)
    counts = {}
    for kind in ("passed", "failed", "skipped", "error"):
        found = re.search(rf"(\d+) {kind}", result.stdout)
        counts[kind] = int(found.group(1)) if found else 0
    counts["exit_code"] = result.returncode
    return counts


def installed():
    """Versions of the packages that matter."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def median_time(function, synchronize):
    """Seconds of a call, the median of a few, after one that warms up."""
    function()
    synchronize()
    seconds = []
    for _ in range(REPEATS):
        start = perf_counter()
        function()
        synchronize()
        seconds.append(perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def transfers(function, has_card):
    """Copies to the card and from it in a call, and waits for it; a dict.

    Of a real card these are those that its profiler sees.
    """
    if not has_card:
        from tests import simulated_gpu

        with (
            simulated_gpu.count_copies() as copies,
            simulated_gpu.count_waits() as waits,
        ):
            function()
        return {"copies": len(copies), "waits": len(waits)}

    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        function()
    counts = {"copies": 0, "waits": 0}
    for event in profiled.key_averages():
        if event.key.startswith(("Memcpy HtoD", "Memcpy DtoH")):
            counts["copies"] += event.count
        if event.key == "cudaStreamSynchronize":
            counts["waits"] += event.count
    return counts


def random_problem(n_rows, n_points, d):
    """Rows, labels, and a validation set as keyword arguments of `fit`."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, d), dtype=np.float32)
    y = rng.integers(0, 10, n_rows)
    points = {
        "X_val": rng.standard_normal((n_points, d), dtype=np.float32),
        "y_val": rng.integers(0, 10, n_points),
    }
    return X, y, points


def neighbour_lines(sizes, device, synchronize, has_card):
    """Times and errors of the neighbour methods, a dict a line."""
    import numpy as np
    import torch
    from sklearn.base import clone

    from skvalue import KNNShapleyValuer, TKNNShapleyValuer

    valuers = {
        "KNN": KNNShapleyValuer(5, metric="cosine"),
        "KNN, max_rank=100": KNNShapleyValuer(5, metric="cosine", max_rank=100),
        "TKNN": TKNNShapleyValuer(0.9),
        "private TKNN": TKNNShapleyValuer(0.9, epsilon=1.0, delta=1e-6),
    }
    for n_rows, n_points, d in sizes:
        X, y, points = random_problem(n_rows, n_points, d)
        rows = torch.from_numpy(X).to(device)
        queries = torch.from_numpy(points["X_val"]).to(device)

        def product_and_sort(rows=rows, queries=queries):
            # In tiles, as a sort of all pairs would not fit.
            for tile in queries.split(100):
                torch.sort(tile @ rows.T, dim=1)

        floor = median_time(product_and_sort, synchronize)
        del rows, queries
        for name, valuer in valuers.items():
            exact = None
            for engine, on in (("native", "cpu"), ("torch", "cuda"), ("faiss", "cuda")):
                fitted = clone(valuer).set_params(engine=engine, device=on)
                line = {"method": name, "n_rows": n_rows, "n_points": n_points}
                line |= {"d": d, "engine": engine, "device": on}
                try:
                    fitted.fit(X, y, **points)
                except (ValueError, ImportError) as error:
                    yield line | {"refused": str(error)}
                    continue

                def fit(fitted=fitted, X=X, y=y, points=points):
                    fitted.fit(X, y, **points)

                seconds = median_time(fit, synchronize)
                line["pairs_per_second"] = n_rows * n_points / seconds
                line["times_product_and_sort"] = seconds / floor
                if on == "cuda":
                    line |= transfers(fit, has_card)
                # A private fit draws other noise each time.
                if "private" not in name:
                    exact = fitted.values_ if exact is None else exact
                    line["largest_error"] = float(np.abs(fitted.values_ - exact).max())
                yield line


def crossing_lines(sizes, synchronize):
    """Seconds of fits on the CPU and on the card, a dict a line."""
    from skvalue import KNNShapleyValuer, TKNNShapleyValuer

    valuers = {
        "KNN": KNNShapleyValuer(5, metric="cosine"),
        "TKNN": TKNNShapleyValuer(0.9),
    }
    for n_rows, n_points, d in sizes:
        X, y, points = random_problem(n_rows, n_points, d)
        for name, valuer in valuers.items():
            line = {"method": name, "n_rows": n_rows, "n_points": n_points, "d": d}
            line["multiplications"] = n_rows * n_points * d
            for engine, device in (("native", "cpu"), ("torch", "cuda")):
                valuer.set_params(engine=engine, device=device)

                def fit(valuer=valuer, X=X, y=y, points=points):
                    valuer.fit(X, y, **points)

                line[f"{engine}_seconds"] = median_time(fit, synchronize)
            line["gain"] = line["native_seconds"] / line["torch_seconds"]
            yield line


def crossing(lines):
    """The number of multiplications from which the card is faster in all lines.

    None if it is slower in a line of the largest number.
    """
    slower = [line["multiplications"] for line in lines if line["gain"] < 1]
    numbers = [line["multiplications"] for line in lines]
    larger = [number for number in numbers if number > max(slower, default=0)]
    return min(larger, default=None)


def crossing_text(number):
    """What to do with the result of `crossing`."""
    if number is None:
        return f"No size is known from which the card is faster: {CONSTANT} stays None."
    return (
        f"From {number} multiplications on, the card is faster in every line. For "
        f"engine='auto' to use it then, set {CONSTANT} to {number}."
    )


def network_lines(is_quick, synchronize, has_card):
    """Times of the methods that train on a card, a dict a line."""
    import numpy as np
    import torch
    from torch import nn

    from skvalue import GradientSemivalueValuer, InRunShapleyValuer, UnrolledValuer
    from skvalue.priarta import SimCLR

    rng = np.random.default_rng(0)
    n_rows = 60 if is_quick else 5000
    X = rng.standard_normal((n_rows, 32), dtype=np.float32)
    y = rng.integers(0, 3, n_rows)
    points = {"X_val": X[:20] + np.float32(0.1), "y_val": y[:20]}
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 3))
    valuers = [
        GradientSemivalueValuer(network, n_permutations=2, random_state=0),
        InRunShapleyValuer(network, random_state=0),
        UnrolledValuer(network, random_state=0),
        SimCLR(n_epochs=1, random_state=0),
    ]
    images = rng.random((n_rows, 32, 32, 3), dtype=np.float32)
    for valuer in valuers:
        for device in ("cpu", "cuda"):
            valuer.set_params(device=device)

            def fit(valuer=valuer):
                if isinstance(valuer, SimCLR):
                    valuer.fit(images)
                else:
                    valuer.fit(X, y, **points)

            line = {"method": type(valuer).__name__, "device": device}
            line |= {"n_rows": n_rows}
            try:
                line["seconds"] = median_time(fit, synchronize)
                if device == "cuda":
                    line |= transfers(fit, has_card)
            except (ValueError, ImportError) as error:
                line["refused"] = str(error)
            yield line


def shown(cell):
    """An entry of a table."""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def to_markdown(report):
    """The report as a page."""
    lines = [
        f"# {report['card']}",
        "",
        f"`python tests/gpu/acceptance.py`, {report['date']}; "
        + ", ".join(f"{name} {number}" for name, number in report["versions"].items())
        + ".",
        "",
        f"Tests: {report['tests']['passed']} passed, {report['tests']['failed']} "
        f"failed, {report['tests']['skipped']} skipped.",
        "",
    ]
    if report["is_simulated"]:
        lines += ["The card is simulated: its times say nothing.", ""]
    lines += [crossing_text(report["gpu_from"]), ""]
    for name, table in report["tables"].items():
        columns = list(dict.fromkeys(key for line in table for key in line))
        lines += [f"## {name}", "", f"| {' | '.join(columns)} |"]
        lines.append("|" + "---|" * len(columns))
        for line in table:
            cells = [line.get(column, "") for column in columns]
            lines.append(f"| {' | '.join(map(shown, cells))} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default=str(ROOT / "doc" / "benchmarks"))
    parser.add_argument("--wheels")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--no-tests", action="store_true", help="the table alone")
    options = parser.parse_args(arguments)
    if options.wheels:
        install(join_wheels(options.wheels))

    import pytest
    import torch

    has_card = torch.cuda.is_available()
    tests = {"passed": 0, "failed": 0, "skipped": 0, "exit_code": 0}
    if not options.no_tests:
        tests = run_tests(has_card)

    with pytest.MonkeyPatch.context() as monkeypatch:
        device = "cuda"
        name = torch.cuda.get_device_name() if has_card else "simulated card"
        synchronize = torch.cuda.synchronize if has_card else lambda: None
        if not has_card:
            from tests import simulated_faiss, simulated_gpu
            from tests.conftest import simulate_a_gpu

            simulated_gpu.install()
            device = simulate_a_gpu(monkeypatch).NAME
            simulated_faiss.install(monkeypatch)
        is_quick = options.quick or not has_card
        sizes = SMALL_SIZES if is_quick else SIZES
        crossing_sizes = SMALL_CROSSING_SIZES if is_quick else CROSSING_SIZES
        tables = {
            "Neighbours": [*neighbour_lines(sizes, device, synchronize, has_card)],
            "CPU and card": [*crossing_lines(crossing_sizes, synchronize)],
            "Networks": [*network_lines(is_quick, synchronize, has_card)],
        }

    report = {
        "card": name,
        "is_simulated": not has_card,
        "date": date.today().isoformat(),
        "processor": platform.processor() or platform.machine(),
        "n_cores": os.cpu_count(),
        "versions": installed(),
        "tests": tests,
        # What `crossing_text` says of it is not of a simulated card.
        "gpu_from": crossing(tables["CPU and card"]) if has_card else None,
        "tables": tables,
    }
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "_", name.lower())
    (folder / f"{stem}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    (folder / f"{stem}.md").write_text(to_markdown(report), encoding="utf-8")
    print(to_markdown(report))

    differ = any(
        line.get("largest_error", 0) > TOLERANCES.get(line["method"], TOLERANCE)
        for line in tables["Neighbours"]
    )
    return int(tests["exit_code"] != 0 or differ)


if __name__ == "__main__":
    sys.exit(main())
