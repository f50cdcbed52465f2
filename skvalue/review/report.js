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
const pressed = () => rows.flatMap((tr) => [...tr.querySelectorAll(".verdict [aria-pressed=true]")]
  .map((button) => tr.dataset.row + "," + button.classList.contains("wrong")));
const count = () => { $("done").textContent = pressed().length; };
body.addEventListener("click", (event) => {
  const button = event.target.closest(".verdict button");
  if (!button) return;
  const was = button.getAttribute("aria-pressed") === "true";
  for (const each of button.parentNode.children) each.setAttribute("aria-pressed", "false");
  button.setAttribute("aria-pressed", String(!was));
  count();
});
$("save").onclick = () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([["row,is_error", ...pressed(), ""].join("\n")]));
  link.download = "verdicts.csv";
  link.click();
};
filter(); count();
