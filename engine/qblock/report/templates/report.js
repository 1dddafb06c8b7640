for (const picture of document.querySelectorAll("svg.lattice")) {
  const marks = [...picture.querySelectorAll("circle")], said = picture.closest("figure").querySelector("output");
  let at = Math.max(0, marks.findIndex((mark) => mark.classList.contains("chosen")));
  const show = (next) => {
    marks[at].classList.remove("at");
    at = (next + marks.length) % marks.length;
    marks[at].classList.add("at");
    said.textContent = marks[at].querySelector("title").textContent;
  };
  const near = (up) => {
    const y = +marks[at].getAttribute("cy"), x = +marks[at].getAttribute("cx");
    const rows = [...new Set(marks.map((mark) => +mark.getAttribute("cy")))].sort((a, b) => a - b);
    const row = rows[rows.indexOf(y) + (up ? -1 : 1)];
    const far = (i) => Math.abs(+marks[i].getAttribute("cx") - x);
    const there = marks.map((mark, i) => i).filter((i) => +marks[i].getAttribute("cy") === row);
    return there.length ? there.reduce((a, b) => (far(b) < far(a) ? b : a)) : at;
  };
  picture.addEventListener("keydown", (event) => {
    const next = { ArrowRight: () => at + 1, ArrowLeft: () => at - 1, ArrowUp: () => near(true), ArrowDown: () => near(false) };
    if (next[event.key]) { event.preventDefault(); show(next[event.key]()); }
  });
  picture.addEventListener("click", (event) => { const i = marks.indexOf(event.target); if (i >= 0) show(i); });
  picture.addEventListener("focus", () => show(at));
}
for (const table of document.querySelectorAll("table.filtered")) {
  const rows = [...table.tBodies[0].rows], label = document.createElement("label");
  const field = document.createElement("input"), said = document.createElement("output");
  field.type = "search";
  label.className = "filter";
  label.append("Rows with the words ", field);
  table.closest(".wide").before(label, said);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    said.textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
  });
}
