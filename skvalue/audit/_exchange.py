"""Rows to review as tasks of Label Studio, and verdicts from files."""

import json
import re
from pathlib import Path

from .._utils.checks import format_values
from .._utils.untrusted import refuse, refuse_no_file
from .._utils.warned import warn
from ._read_text import decode, split

_NUMBER = re.compile(r"[-+]?[\d.,\s]*\d[\d.,]*([eE][-+]?\d+)?\s*%?")
_SKIPPED = {"skip", "skipped", "unsure", "unclear", "don't know", "cannot tell", "?"}
WORDS = dict.fromkeys(("true", "1", "yes", "wahr", "vrai", "verdadero", "ja"), True)
WORDS |= dict.fromkeys(("false", "0", "no", "falsch", "faux", "falso", "nein"), False)


def guarded(entry):
    """An entry that no spreadsheet takes for a formula: an apostrophe stands before
    one.

    >>> [guarded(entry) for entry in ("=A1", "-1", "yes")]
    ["'=A1", '-1', 'yes']
    """
    return f"'{entry}" if _is_formula(entry) else entry


def unguarded(entry):
    """The entry of which `guarded` made this one."""
    return entry[1:] if entry.startswith("'") and _is_formula(entry) else entry


def _is_formula(entry):
    entry = entry.lstrip("'")
    return entry[:1] in tuple("=+-@\t\r") and not _NUMBER.fullmatch(entry)


def label_studio_tasks(report):
    """The rows to review as tasks, with the suggestion as a prediction."""
    probability = dict(zip(report.rows["row"], report.rows.get("probability", ())))
    tasks = []
    for row in report.to_review.tolist():
        content = report.contents.get(row, "")
        if isinstance(content, dict):
            content = "\n".join(f"{name}: {entry}" for name, entry in content.items())
        data = {"row": row, "content": content, "given": str(report.labels[row])}
        data["suggestion"] = str(report.suggestions[row])
        choice = {"from_name": "label", "to_name": "content", "type": "choices"}
        choice["value"] = {"choices": [data["suggestion"]]}
        prediction = {"model_version": "skvalue", "result": [choice]}
        if row in probability:
            prediction["score"] = float(probability[row])
        tasks.append({"data": data, "predictions": [prediction]})
    return tasks


def verdicts_of(path, labels, numbers):
    """Places of rows and verdicts of a CSV file, or of what Label Studio exported."""
    refuse_no_file(path, "verdicts")
    content = Path(path).read_bytes()
    if Path(path).suffix.lower() == ".json":
        try:
            tasks = json.loads(content.decode("utf-8-sig"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(
                f"verdicts must be CSV or JSON text. Got {path}: {error}."
            ) from None
        found = _of_tasks(tasks, labels)
    else:
        found = _of_lines(read_lines(content, "verdicts", ("row", "is_error")), numbers)
    if not found:
        raise ValueError(
            f"verdicts must hold at least one verdict. Got {path}, which has none."
        )
    return list(found), list(found.values())


def read_lines(content, name, columns):
    """The lines of a CSV file, given its bytes, as dicts with these columns and
    others."""
    try:
        fields, _ = split(decode(content)[0], header=True)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a CSV file. Got one that is none: {error}"
        ) from None
    if not set(columns) <= set(fields.names):
        refuse(name, f"a CSV file with the columns {', '.join(columns)}", fields.names)
    return [dict(zip(fields.names, row)) for row in fields.rows]


def _of_lines(lines, numbers):
    """Row -> verdict of the lines of a file; corrections have the numbers of rows for
    people."""
    of_file = "accept" in lines[0]
    places, found = {number: place for place, number in enumerate(numbers.tolist())}, {}
    for line in lines:
        word = line["is_error"].strip().lower()
        if word == "":
            continue
        if word not in WORDS:
            refuse("is_error", "true, false or nothing", line["is_error"])
        row = row_of(line["row"])
        if of_file and row not in places:
            refuse("row", "a row of the report", row)
        found[places[row] if of_file else row] = WORDS[word]
    return found


def _of_tasks(tasks, labels):
    """Row -> verdict of annotated tasks: the label is wrong if another one was chosen.

    Rows on which annotators contradict each other, or one chose several labels, have no
    verdict.
    """
    given, found, unclear = list(map(str, labels.tolist())), {}, []
    known = set(given)
    for task in tasks if isinstance(tasks, list) else [None]:
        try:
            row, chosen = row_of(task["data"]["row"]), _choices(task["annotations"])
        except (TypeError, KeyError, IndexError, AttributeError):
            refuse(
                "verdicts", "tasks with annotations, as Label Studio exports them", task
            )
        if row >= len(labels):
            refuse("row", f"a row number from 0 to {len(labels) - 1}", row)
        chosen = [
            {w for w in words if w in known or w.lower() not in _SKIPPED}
            for words in chosen
        ]
        verdicts = {words != {given[row]} for words in chosen if words}
        if len(verdicts) == 1 and all(len(words) < 2 for words in chosen):
            found[row] = verdicts.pop()
        elif verdicts:
            unclear.append(row)
    if unclear:
        warn(
            f"{len(unclear)} rows have no verdict, since annotators contradict each other or chose "
            f"several labels: rows {format_values(unclear, 20)}"
        )
    return found


def _choices(annotations):
    """The labels that each annotator chose last."""
    last = {}
    for place, annotation in enumerate(annotations):
        if not annotation.get("was_cancelled"):
            results = [r for r in annotation["result"] if r.get("type") == "choices"]
            who = json.dumps(annotation.get("completed_by", f"annotation {place}"))
            last[who] = [str(word) for r in results for word in r["value"]["choices"]]
    return last.values()


def row_of(text):
    """A row number."""
    if not str(text).strip().isdecimal():
        refuse("row", "a row number", text)
    return int(text)
