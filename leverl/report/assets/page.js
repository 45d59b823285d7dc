(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const plots = () => [...document.querySelectorAll(".plotly-graph-div")].filter((plot) => plot.layout);

  function paint(isDark) {
    const ink = isDark ? "#d5dbe1" : "#3c454e";
    const card = isDark ? "rgba(25,30,35,.82)" : "rgba(255,255,255,.82)";
    for (const plot of plots()) {
      const change = {"font.color": ink, "hoverlabel.bgcolor": isDark ? "#2a323a" : "#ffffff", "hoverlabel.font.color": ink};
      (plot.layout.annotations || []).forEach((note, index) => {
        if (note.name === "tick") change[`annotations[${index}].bgcolor`] = card;
      });
      Plotly.relayout(plot, change);
    }
  }

  function say(text) {
    document.getElementById("said").textContent = text;
  }

  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const before = button.textContent;
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => (button.textContent = before), 1500);
  }

  const valueOf = (cell) => (cell.dataset.v === undefined ? null : cell.dataset.v);
  const isNumber = (text) => text !== null && text !== "" && !Number.isNaN(Number(text));

  function sort(header) {
    const table = header.closest("table");
    const index = [...header.parentNode.children].indexOf(header);
    const numeric = header.classList.contains("n");
    const now = header.getAttribute("aria-sort");
    const next = now ? (now === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
    const sign = next === "ascending" ? 1 : -1;
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", next);
    const key = (row) => valueOf(row.cells[index]) ?? (numeric ? null : row.cells[index].textContent);
    const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -1 : 1;
      return sign * (isNumber(a) ? Number(a) - Number(b) : String(a).localeCompare(String(b)));
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
    say(`Sorted by ${header.textContent}, ${next}`);
  }

  function csv(name) {
    const field = (text) => {
      const safe = /^[=+\-@\t\r]/.test(text) && !isNumber(text) ? `'${text}` : text;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const text = (cell) => (cell.textContent === "–" ? "" : valueOf(cell) ?? cell.textContent);
    const rows = [...document.getElementById(name).rows];
    return rows.map((row) => [...row.cells].map((cell) => field(text(cell))).join(",")).join("\r\n") + "\r\n";
  }

  function save(text, file) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", text], {type: "text/csv;charset=utf-8"}));
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.classList.contains("copy")) copy(button.dataset.copy, button);
    else if (button.classList.contains("csv-copy")) copy(csv(button.dataset.table), button);
    else if (button.classList.contains("csv-save")) save(csv(button.dataset.table), button.dataset.file);
    else if (button.closest("table.sortable thead")) sort(button.closest("th"));
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((part) => (part.open = true));
    if (dark.matches && window.Plotly) paint(false);
  });
  addEventListener("afterprint", () => {
    opened.forEach((part) => (part.open = false));
    if (dark.matches && window.Plotly) paint(true);
  });

  if (!window.Plotly) return;
  // A chart is drawn while the page is still being read, when its place in a grid may be wider than in the end.
  plots().forEach((plot) => Plotly.Plots.resize(plot));
  paint(dark.matches);
  dark.addEventListener("change", () => paint(dark.matches));
})();
