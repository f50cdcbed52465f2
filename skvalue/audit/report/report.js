const $ = (id) => document.getElementById(id), body = document.querySelector("#list tbody");
const rows = [...body.querySelectorAll("tr[data-row]")];
const texts = new Map(rows.map((tr) => [tr, tr.textContent.toLowerCase()]));
function filter() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const label = $("label") ? $("label").value : "";
  const on = (id) => $(id) && $(id).checked;
  let count = 0;
  for (const tr of rows) {
    tr.hidden = !(words.every((word) => texts.get(tr).includes(word))
      && (!label || tr.dataset.label === label)
      && (!on("review") || "review" in tr.dataset) && (!on("named") || "named" in tr.dataset));
    count += !tr.hidden;
  }
  $("count").textContent = count + " of " + rows.length + " rows";
}
for (const id of ["find", "label", "review", "named"]) if ($(id)) $(id).oninput = filter;
for (const th of document.querySelectorAll("#list th[data-key]")) th.onclick = () => {
  const up = th.getAttribute("aria-sort") !== "ascending", key = th.dataset.key;
  document.querySelectorAll("#list th").forEach((e) => e.removeAttribute("aria-sort"));
  th.setAttribute("aria-sort", up ? "ascending" : "descending");
  const of = (tr) => tr.dataset[key], sign = up ? 1 : -1;
  rows.sort((a, b) => sign * (isNaN(of(a)) || isNaN(of(b))
    ? of(a).localeCompare(of(b)) : of(a) - of(b)) || a.dataset.rank - b.dataset.rank);
  body.append(...rows);
};

// Verdicts, by row: {say: "wrong", "right", "remove" or "keep", label: the label instead}. Those on
// a spelling, "merge" or "apart", are by all of its rows.
const page = document.body.dataset, verdicts = new Map();
const widgets = [...document.querySelectorAll(".verdict")];
const ofRow = Map.groupBy ? Map.groupBy(widgets, (e) => e.dataset.row) : widgets.reduce(
  (all, e) => all.set(e.dataset.row, [...(all.get(e.dataset.row) || []), e]), new Map());
function show(row) {
  const verdict = verdicts.get(row);
  for (const widget of ofRow.get(row) || []) {
    for (const button of widget.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(!!verdict && button.dataset.say === verdict.say));
    const input = widget.querySelector(".new");
    if (!input) continue;
    input.hidden = !verdict || verdict.say !== "wrong";
    if (!input.hidden && document.activeElement !== input) input.value = verdict.label;
  }
}
function keep() {
  for (const e of document.querySelectorAll(".done")) e.textContent = verdicts.size;
  try { localStorage.setItem(page.key, JSON.stringify([...verdicts])); } catch { /* no storage */ }
}
for (const e of widgets)
  if (e.dataset.say) verdicts.set(e.dataset.row, { say: e.dataset.say, label: e.dataset.new });
try {
  const kept = JSON.parse(localStorage.getItem(page.key) || "null");
  if (Array.isArray(kept)) {
    verdicts.clear();
    for (const [row, verdict] of kept) if (ofRow.has(row)) verdicts.set(row, verdict);
  }
} catch { /* no storage, or of another page */ }
document.addEventListener("click", (event) => {
  const button = event.target.closest(".verdict button");
  if (!button) return;
  const { row, new: label } = button.parentNode.dataset, say = button.dataset.say;
  if (button.getAttribute("aria-pressed") === "true") verdicts.delete(row);
  else verdicts.set(row, { say, label });
  show(row);
  keep();
});
document.addEventListener("input", (event) => {
  const widget = event.target.closest(".verdict");
  if (!widget) return;
  verdicts.get(widget.dataset.row).label = event.target.value;
  show(widget.dataset.row);
  keep();
});
// No spreadsheet takes an entry with an apostrophe before it for a formula; numbers stay.
const guard = (text) => /^'*[=+\-@\t\r]/.test(text)
  && !/^'*[-+]?[\d.,\s]*\d[\d.,]*([eE][-+]?\d+)?\s*%?$/.test(text) ? "'" + text : text;
const field = (text) => /[",\n\r]/.test(guard(text))
  ? '"' + guard(text).replaceAll('"', '""') + '"' : guard(text);
function corrections() {
  const lines = [[page.column, "column", "old", "new", "why", "accept", "is_error", "id"]];
  for (const [row, { say, label }] of verdicts) {
    const { old, id } = ofRow.get(row)[0].dataset, changed = label !== "" && label !== old;
    const accept = say === "remove" ? say
      : String((say === "wrong" || say === "merge") && changed);
    const error = { wrong: "true", right: "false" }[say] || "";
    const what = $("label") ? "label" : "target";
    const why = { wrong: `the ${what} is wrong`, right: `the ${what} is right`,
      remove: "the row is entered twice", keep: "the row is no copy",
      merge: "another spelling of the label", apart: "another label" }[say];
    const entry = say === "wrong" || say === "merge" ? label : old;
    for (const number of row.split(" "))
      if (number === row || !["wrong", "remove"].includes((verdicts.get(number) || {}).say))
        lines.push([number, page.target, old, entry, why, accept, error, id]);
  }
  return lines.map((line) => line.map(field).join(",")).join("\n") + "\n";
}
for (const e of document.querySelectorAll(".save")) e.onclick = () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([corrections()], { type: "text/csv" }));
  link.download = page.file;
  link.click();
};
filter();
for (const row of ofRow.keys()) show(row);
keep();
