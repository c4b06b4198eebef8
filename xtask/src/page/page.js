// Sorts a table by the column whose heading is pressed. Without this script tables stay as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    const data = cell.querySelector("data");
    return data ? Number(data.value) : cell.textContent.trim();
  };
  // Numbers before text, so that what is not measured is last.
  const compare = (a, b, sign) => {
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
  };
  heads.forEach((head, column) => {
    if ("plain" in head.dataset) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isNumber = head.classList.contains("n");
      const now = head.getAttribute("aria-sort");
      const next = now ? (now === "ascending" ? "descending" : "ascending")
        : (isNumber ? "descending" : "ascending");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [key(row, column), row]);
      rows.sort((a, b) => compare(a[0], b[0], sign));
      body.append(...rows.map((row) => row[1]));
    });
  });
}
