// Headings of #reports become buttons that sort its rows by the column's text: first up, then down.
(() => {
  "use strict";
  const table = document.getElementById("reports");
  if (!table) return;
  const collator = new Intl.Collator("en", { numeric: true });
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      const words = (row) => row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows].sort((a, b) => collator.compare(words(a), words(b)));
      table.tBodies[0].append(...(down ? rows.reverse() : rows));
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
    heading.replaceChildren(button);
  });
})();
