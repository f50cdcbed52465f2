"""Rows to review as tasks of Label Studio, and verdicts from files."""

import csv
import json
import os

from .._utils.untrusted import refuse, refuse_no_file

_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def label_studio_tasks(report):
    """The rows to review as tasks, with the suggestion as a prediction."""
    probability = dict(zip(report.rows["row"], report.rows.get("probability", ())))
    tasks = []
    for row in report.to_review.tolist():
        suggestion = str(report.suggestions[row])
        choice = {"from_name": "label", "to_name": "content", "type": "choices"}
        choice["value"] = {"choices": [suggestion]}
        prediction = {"model_version": "skvalue", "result": [choice]}
        if row in probability:
            prediction["score"] = float(probability[row])
        data = {
            "row": row,
            "content": _as_text(report.contents.get(row, "")),
            "given": str(report.labels[row]),
            "suggestion": suggestion,
        }
        tasks.append({"data": data, "predictions": [prediction]})
    return tasks


def _as_text(content):
    """One string of the columns of a row; texts and pictures are strings."""
    if isinstance(content, dict):
        return "\n".join(f"{name}: {entry}" for name, entry in content.items())
    return content


def verdicts_of(path, labels):
    """Row numbers and verdicts of a CSV file, or of what Label Studio exported."""
    refuse_no_file(path, "verdicts")
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            is_json = os.path.splitext(path)[1].lower() == ".json"
            found = _of_tasks(json.load(file), labels) if is_json else _of_lines(file)
        except (UnicodeDecodeError, csv.Error, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"verdicts must be CSV or JSON text. Got {path}: {error}.") from None
    if not found:
        raise ValueError(f"verdicts must hold at least one verdict. Got {path}, which has none.")
    return list(found), list(found.values())


def _of_lines(file):
    """Row -> verdict of a CSV file."""
    lines = csv.DictReader(file)
    names = lines.fieldnames or []
    if not {"row", "is_error"} <= set(names):
        refuse("verdicts", "a CSV file with the columns row and is_error", names)
    found = {}
    for line in lines:
        word = (line["is_error"] or "").strip().lower()
        if word == "":
            continue
        if word not in _WORDS:
            refuse("is_error", "true, false or nothing", line["is_error"])
        found[_row_of(line["row"])] = _WORDS[word]
    return found


def _of_tasks(tasks, labels):
    """Row -> verdict of annotated tasks: the label is wrong if another one was chosen."""
    found = {}
    for task in tasks if isinstance(tasks, list) else [None]:
        try:
            row = _row_of(task["data"]["row"])
            done = [a for a in task["annotations"] if not a.get("was_cancelled")]
            results = [result for a in done[-1:] for result in a["result"]]
            chosen = [r["value"]["choices"][0] for r in results if r.get("type") == "choices"]
        except (TypeError, KeyError, IndexError, AttributeError):
            refuse("verdicts", "tasks with annotations, as Label Studio exports them", task)
        if chosen and row < len(labels):
            found[row] = str(chosen[0]) != str(labels[row])
        elif chosen:
            refuse("row", f"a row number from 0 to {len(labels) - 1}", row)
    return found


def _row_of(text):
    """A row number."""
    if not str(text).strip().isdecimal():
        refuse("row", "a row number", text)
    return int(text)
