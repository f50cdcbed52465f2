"""Verdicts from files: lists that a person filled in, and exports of Label Studio."""

import json
from pathlib import Path

from ..._utils.checks import format_values
from ..._utils.untrusted import refuse, refuse_no_file
from ..._utils.warned import warn
from ...exceptions import ParameterError
from .._spreadsheets import WORDS, read_lines, row_of

_SKIPPED = {"skip", "skipped", "unsure", "unclear", "don't know", "cannot tell", "?"}


def label_studio_tasks(report):
    """The rows to review as tasks, with the suggestion as a prediction."""
    probabilities = dict(zip(report.rows["row"], report.rows.get("probability", ())))
    tasks = []
    for row in report.to_review.tolist():
        content = report.contents.get(row, "")
        if isinstance(content, dict):
            content = "\n".join(f"{name}: {entry}" for name, entry in content.items())
        suggestion = str(report.suggestions[row])
        choice = {
            "from_name": "label",
            "to_name": "content",
            "type": "choices",
            "value": {"choices": [suggestion]},
        }
        prediction = {"model_version": "skvalue", "result": [choice]}
        if row in probabilities:
            prediction["score"] = float(probabilities[row])
        is_of_file = report.about["rows"] == "file"
        data = {
            "row" if is_of_file else "index": shown_number(report, row),
            "content": content,
            "given": str(report.labels[row]),
            "suggestion": suggestion,
        }
        tasks.append({"data": data, "predictions": [prediction]})
    return tasks


def read_verdicts(path, labels, numbers):
    """Rows, and whether their label is wrong, of a CSV file or of Label Studio's JSON.

    labels : ndarray of shape (n_samples,)
    numbers : ndarray of int of shape (n_samples,), of the rows in the file of the table
    """
    refuse_no_file(path, "verdicts")
    content = Path(path).read_bytes()
    if Path(path).suffix.lower() == ".json":
        try:
            tasks = json.loads(content.decode("utf-8-sig"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise ParameterError(
                "verdicts", f"must be CSV or JSON text. Got {path}: {error}."
            ) from None
        verdicts = _verdicts_of_tasks(tasks, labels, numbers)
    else:
        lines = read_lines(content, "verdicts", ("row", "is_error"))
        verdicts = _verdicts_of_lines(lines, numbers)
    if not verdicts:
        raise ParameterError(
            "verdicts", f"must hold at least one verdict. Got {path}, which has none."
        )
    return list(verdicts), list(verdicts.values())


def _verdicts_of_lines(lines, numbers):
    """Row -> verdict of the lines of a file."""
    places = {number: place for place, number in enumerate(numbers.tolist())}
    verdicts = {}
    for line in lines:
        word = line["is_error"].strip().lower()
        if word == "":
            continue
        if word not in WORDS:
            refuse("is_error", "true, false or nothing", line["is_error"])
        verdicts[_place(line, places)] = WORDS[word]
    return verdicts


def shown_number(report, row):
    """The number of a row on the page, and in files that a report writes."""
    return int(report.numbers[row]) if report.about["rows"] == "file" else row


def _place(record, places):
    """The row, from 0, of a record with a row of the file, or an index from 0.

    places : dict, number of a row in the file -> the row
    """
    if "index" in record:
        row = row_of(record["index"], "index")
        if row >= len(places):
            refuse("index", f"a row number from 0 to {len(places) - 1}", row)
        return row
    number = row_of(record["row"])
    if number not in places:
        refuse("row", "a row of the report", number)
    return places[number]


def _verdicts_of_tasks(tasks, labels, numbers):
    """Row -> verdict of annotated tasks: the label is wrong if another one was chosen.

    Rows on which annotators contradict each other, or one chose several labels, have no
    verdict.
    """
    rule = "tasks with annotations, as Label Studio exports them"
    if not isinstance(tasks, list):
        refuse("verdicts", rule, tasks)
    given = list(map(str, labels.tolist()))
    classes = set(given)
    places = {number: place for place, number in enumerate(numbers.tolist())}
    verdicts = {}
    unclear = []
    for task in tasks:
        try:
            row = _place(task["data"], places)
            choices = _choices(task["annotations"])
        except (TypeError, KeyError, IndexError, AttributeError):
            refuse("verdicts", rule, task)

        # A choice such as "unsure" is none, unless it is a class.
        choices = [_without_skips(chosen, classes) for chosen in choices]
        opinions = {chosen != {given[row]} for chosen in choices if chosen}
        if not opinions:
            continue
        if len(opinions) > 1 or any(len(chosen) > 1 for chosen in choices):
            unclear.append(row)
        else:
            verdicts[row] = opinions.pop()
    if unclear:
        warn(
            f"{len(unclear)} rows have no verdict, since annotators contradict each "
            f"other or chose several labels: rows {format_values(unclear, 20)}"
        )
    return verdicts


def _without_skips(chosen, classes):
    """The labels among the choices of an annotator, as a set."""
    return {
        label for label in chosen if label in classes or label.lower() not in _SKIPPED
    }


def _choices(annotations):
    """The labels that each annotator chose last, a list of lists."""
    last = {}
    for place, annotation in enumerate(annotations):
        if annotation.get("was_cancelled"):
            continue
        annotator = annotation.get("completed_by", f"annotation {place}")
        chosen = []
        for result in annotation["result"]:
            if result.get("type") == "choices":
                chosen += [str(label) for label in result["value"]["choices"]]
        last[json.dumps(annotator)] = chosen
    return list(last.values())
