"""Tables of people as text files."""

import numpy as np
import pandas as pd


def people_table(n=120, seed=0):
    """Column -> entries, as strings, of a table of people."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n)
    job = rng.choice(["Pflege", "Büro"], n)
    has_bought = age + 20 * (job == "Büro") > 50
    has_bought ^= rng.random(n) < 0.05
    days = pd.to_timedelta(rng.integers(0, 360, n), unit="D")
    dates = pd.Timestamp("2024-01-01") + days
    return {
        "id": [str(number) for number in 10_000 + rng.permutation(n)],
        "alter": [f"{value:.1f}" for value in age],
        "beruf": job.tolist(),
        "tag": dates.strftime("%Y-%m-%d").tolist(),
        "kauf": np.where(has_bought, "ja", "nein").tolist(),
    }


def text_of(table, separator=",", newline="\n"):
    """The text of a table."""
    lines = [separator.join(table), *map(separator.join, zip(*table.values()))]
    return newline.join([*lines, ""])
