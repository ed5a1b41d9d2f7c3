(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Sorting: a column goes up, down, and back to the order of the report.
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.textContent.trim();
    return cell.classList.contains("number") ? parseFloat(text.replace("−", "-").replace(/^[^-+.\d]+/, "")) : text;
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  const sort = (table, rows, column, order) => {
    const missing = (row) => Number.isNaN(key(row, column));
    const sorted = order === "none" ? rows : [...rows].sort((a, b) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return (order === "ascending" ? 1 : -1) * compare(key(a, column), key(b, column));
    });
    table.tBodies[0].append(...sorted);
  };
  for (const table of all("table.data")) {
    const rows = [...table.tBodies[0].rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = next[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", order);
        sort(table, rows, column, order);
      });
    });
  }

  // Only the claims of one verdict.
  const filter = document.querySelector(".filter");
  const claims = all("table.claims tbody tr");
  const show = (verdict) => {
    for (const row of claims) row.hidden = verdict !== "" && row.dataset.verdict !== verdict;
    for (const button of all("button", filter)) button.setAttribute("aria-pressed", button.dataset.verdict === verdict);
    filter.querySelector(".shown").textContent = `${claims.filter((row) => !row.hidden).length} of ${claims.length} shown`;
  };
  filter.hidden = claims.length < 2;
  for (const button of all("button", filter)) button.addEventListener("click", () => show(button.dataset.verdict));
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.hidden) return;
    show("");
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // The section in view is marked in the contents.
  const links = new Map(all(".contents a").map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      for (const [id, link] of links) {
        if (id === entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-15% 0px -80% 0px" });
  for (const section of all("main > section")) seen.observe(section);

  addEventListener("beforeprint", () => {
    show("");
    for (const details of all("details")) details.open = true;
  });
})();
