// Makes the tables of a report sortable, and its command easy to copy. The report is complete without this script.

// The value that a cell is sorted by: a number if the cell begins with one, or its text. "–" stands for nothing.
function sortValue(cell) {
  const text = cell.textContent.trim();
  if (text === "–" || text === "") return null;
  const number = parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

// Rows without a value stay at the end, whichever way the others are sorted.
function sortBy(table, index, sign) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, value: sortValue(row.cells[index]) }));
  rows.sort((a, b) => (a.value === null) - (b.value === null) || (a.value === null ? 0 : sign * compare(a.value, b.value)));
  body.append(...rows.map(({ row }) => row));
}

function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  for (const [index, heading] of headings.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      // The largest figures are what a reader looks for; names start at A.
      const first = heading.classList.contains("n") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const next = before === first ? other : first;
      for (const each of headings) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", next);
      sortBy(table, index, next === "ascending" ? 1 : -1);
    });
  }
}

// A page that was opened from a file may have no clipboard: the text is selected, and the browser copies that.
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  }
}

// Paper cannot be unfolded: the rows are printed even if they are folded on the screen.
const folds = [...document.querySelectorAll("details.rows:not([open])")];
addEventListener("beforeprint", () => { for (const fold of folds) fold.open = true; });

for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const copied = await copy(document.getElementById(button.dataset.from));
    button.textContent = copied ? "Copied" : "Press Ctrl+C";
  });
}
