"use strict";

// Numbers are exact: a pair of integers [numerator, denominator], or null for what is no number.

function parse(text) {
  const fraction = /^\s*(-?\d+)\s*\/\s*(\d+)\s*$/.exec(text);
  if (fraction) return BigInt(fraction[2]) === 0n ? null : [BigInt(fraction[1]), BigInt(fraction[2])];
  const decimal = /^\s*(-?)(\d+)(?:\.(\d+))?\s*$/.exec(text);
  if (!decimal) return null;
  const digits = decimal[3] || "";
  return [BigInt(decimal[1] + decimal[2] + digits), 10n ** BigInt(digits.length)];
}

function sign(a, b) {
  const left = a[0] * b[1], right = b[0] * a[1];
  return left > right ? 1 : left < right ? -1 : 0;
}

// Logarithms have 60 digits; within 1e-45 they are equal.
function nearlyEqual(a, b) {
  const size = (n) => (n < 0n ? -n : n);
  const most = size(b[0]) > b[1] ? size(b[0]) : b[1];
  return size(a[0] * b[1] - b[0] * a[1]) * 10n ** 45n <= most * a[1];
}

// Whether a tightest value is at least (or at most) what is asked.
function meets(value, threshold, bound) {
  if (value === "none") return true;
  if (value === "inf" || value === "-inf") return (value === "inf") === bound.larger;
  const rounded = value[0] === "~", number = parse(rounded ? value.slice(1) : value);
  const side = rounded && nearlyEqual(number, threshold) ? 0 : sign(number, threshold);
  return side === 0 ? bound.attained : side > 0 === bound.larger;
}

// Whether a spec may ask for this number.
function valid(number, bound) {
  if (number === null || (bound.whole && number[0] % number[1] !== 0n)) return false;
  const within = (end, side) => end === null || sign(number, parse(end[0])) === side || (!end[1] && sign(number, parse(end[0])) === 0);
  return within(bound.least, 1) && within(bound.most, -1);
}

// Choices are nodes, and after them maps. asked: for each model the text of each threshold, or null where it is off.
// Whether each choice holds all.
function holding(data, asked) {
  const result = data.smallest.map(() => true);
  for (const node of data.barred) result[node] = false;
  asked.forEach((thresholds, i) => (thresholds || []).forEach((text, j) => {
    const bound = data.models[i].bounds[j], number = parse(text);
    const passes = bound.values.map((value) => meets(value, number, bound));
    bound.at.forEach((place, node) => { if (!passes[place]) result[node] = false; });
  }));
  return result;
}

// The map that a choice is, undefined for a node.
function mapOf(data, choice) {
  return data.maps[choice - (data.smallest.length - data.maps.length)];
}

// Whether each choice holds and is wanted: maps may not be.
function among(data, holds, maps) {
  return holds.map((held, choice) => held && (maps || !mapOf(data, choice)));
}

// Whether a choice shows each column at its highest accepted level or finer.
function shows(data, most, node) {
  return most.every((level, column) => data.levels[column][node] <= level);
}

// The best choice by a metric, ties as a search decides them; -1 where there is none. Maps have not every metric.
function best(data, holds, most, metric) {
  const order = data.metrics[metric].order;
  let result = -1;
  holds.forEach((held, node) => {
    if (held && order[node] !== null && shows(data, most, node) && (result < 0 || order[node] < order[result])) result = node;
  });
  return result;
}

// For each column the best choice that shows one level more of it than this one; -1 where there is none, null at level 0.
function finer(data, holds, most, metric, node) {
  return data.levels.map((levels, column) => {
    if (levels[node] === 0) return null;
    return best(data, holds, most.map((level, i) => (i === column ? levels[node] - 1 : level)), metric);
  });
}

// Thresholds that are not numbers of their range: pairs of model and bound.
function wrong(data, asked) {
  const result = [];
  asked.forEach((thresholds, i) => (thresholds || []).forEach((text, j) => {
    if (!valid(parse(text), data.models[i].bounds[j])) result.push([i, j]);
  }));
  return result;
}

// The lines to paste into the spec.
function lines(data, asked, node) {
  const text = ["privacy:"];
  asked.forEach((thresholds, i) => {
    if (thresholds === null) return;
    const model = data.models[i];
    const own = thresholds.map((given, j) => `${model.bounds[j].parameter}: ${given.trim()}`);
    const more = model.complete ? "" : "  # and the other parameters of this entry";
    text.push(`  - ${model.name}: {${[...own, ...model.yaml].join(", ")}}${more}`);
  });
  const levels = data.columns.map((column, i) => `${column.yaml}: ${data.levels[i][node]}`);
  text.push(`search: ${mapOf(data, node) ? data.map_search : `{node: {${levels.join(", ")}}}`}`);
  return text.join("\n") + "\n";
}

function shortest(number) {
  return Math.abs(number) >= 1e6 ? Math.round(number).toLocaleString("en") : String(+number.toPrecision(4));
}

// What another choice loses of a metric, in its own unit.
function lost(data, metric, node, other) {
  const of = data.metrics[metric], difference = (of.values[other] - of.values[node]) * (of.smaller ? 1 : -1);
  const name = of.name.replace(/_/g, " ");
  if (of.values[node] === null || of.values[other] === null) return `no ${name} of a map`;
  if (difference === 0) return `the same ${name}`;
  return `${name} ${shortest(of.values[node])} becomes ${shortest(of.values[other])}, ${difference > 0 ? "worse" : "better"}`;
}

if (typeof document !== "undefined") {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const element = (name, text, attributes = {}) => {
    const made = ["svg", "rect", "path", "text", "line", "title"].includes(name)
      ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    if (text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const field = (i, j) => at(`t-${i}-${j}`), slider = (i, j) => at(`s-${i}-${j}`);
  let node = -1, looked = -1;

  const asked = () => data.models.map((model, i) => (at(`m-${i}`).checked ? model.bounds.map((_, j) => field(i, j).value) : null));
  const most = () => data.columns.map((_, i) => +at(`c-${i}`).value);
  const metric = () => +at("metric").value;
  const count = data.smallest.length - data.maps.length;
  const words = (column, of) => (mapOf(data, of) ? mapOf(data, of).words[column] : data.columns[column].words[data.levels[column][of]]);
  const labels = (column, of) => (mapOf(data, of) ? mapOf(data, of).labels[column] : data.columns[column].labels[data.levels[column][of]]);

  // The detail of a node on the picture, larger being better.
  const detail = (of) => {
    const { values, smaller, name } = data.metrics[metric()];
    if (name === "precision") return values[of];
    if (name === "loss") return 1 - values[of];
    if (values[of] === null) return null;
    const known = values.filter((value) => value !== null), low = Math.min(...known), high = Math.max(...known), share = high > low ? (values[of] - low) / (high - low) : 1;
    return smaller && high > low ? 1 - share : share;
  };

  const bar = (column, of) => {
    const highest = data.heights[column], map = mapOf(data, of);
    const share = map ? map.detail[column] : highest ? 1 - data.levels[column][of] / highest : 1;
    const drawn = element("svg", null, { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img",
      "aria-label": map ? `${shortest(100 * share)} % of the detail on average` : `${data.levels[column][of]} of ${highest} levels coarser` });
    drawn.append(element("rect", null, { class: "all", width: 100, height: 10 }), element("rect", null, { width: 100 * share, height: 10 }));
    return drawn;
  };

  // The rows of each label, or of neighbours together, as bars.
  const distribution = (column, of) => {
    const rows = labels(column, of), most = Math.max(...rows), total = rows.reduce((sum, n) => sum + n, 0);
    const drawn = element("svg", null, { viewBox: `0 0 ${10 * rows.length} 100`, preserveAspectRatio: "none", role: "img", class: "labels",
      "aria-label": `${rows.length} bars, the largest ${shortest(100 * most / total)} % of the rows` });
    rows.forEach((n, i) => drawn.append(element("rect", null, { x: 10 * i + 1, y: 100 - 100 * n / most, width: 8, height: 100 * n / most })));
    return drawn;
  };

  const measure = (of, value) => `${of.name.replace(/_/g, " ")} ${value === null ? "not known of maps" : shortest(value)}`;

  const tell = (of, holds) => {
    const shown = data.columns.map((column, i) => `${column.name} ${words(i, of)}`).join("; "), map = mapOf(data, of);
    const [i, j] = coloured();
    const tightest = i < 0 ? "" : `, ${data.models[i].bounds[j].parameter} ${tightestOf(i, j, of)}`;
    return `${map ? `Map (${map.change}). ` : ""}${holds[of] ? "Holds" : "Fails"}. Smallest group ${data.smallest[of].toLocaleString("en")} ${data.unit}, ` +
      `${measure(data.metrics[metric()], data.metrics[metric()].values[of])}${tightest}: ${shown}`;
  };

  const answer = (holds) => {
    const rows = at("columns"), highest = most(), costs = finer(data, holds, highest, metric(), node);
    rows.replaceChildren(...data.columns.map((column, i) => {
      const row = element("tr", null), name = element("th", null, { scope: "row" }), drawn = element("td", null, { class: "bar", "data-label": "detail, and rows by label" });
      const level = data.levels[i][node];
      const cost = costs[i] === null ? "nothing more to show" : costs[i] < 0 ? "no choice here that holds shows more" :
        `${column.words[level - 1]}: ${lost(data, metric(), node, costs[i])}; smallest group ${data.smallest[costs[i]].toLocaleString("en")}`;
      name.append(element("bdi", column.name));
      const pictures = element("div", null);
      pictures.append(bar(i, node), distribution(i, node));
      drawn.append(pictures);
      row.append(name, element("td", words(i, node), { "data-label": "readers see" }), drawn, element("td", cost, { "data-label": "one level more" }));
      return row;
    }));
    at("metrics").replaceChildren(...data.metrics.map((of) => {
      const row = element("tr", null);
      row.append(
        element("th", of.name.replace(/_/g, " "), { scope: "row" }),
        element("td", of.values[node] === null ? "none" : shortest(of.values[node]), { class: "n", "data-label": "value" }),
        element("td", of.meaning, { "data-label": "meaning" }),
      );
      return row;
    }));
    at("yaml").textContent = lines(data, asked(), node);
    const map = mapOf(data, node);
    at("again").textContent = !map ? "Each run checks a pinned node, and never exchanges it for another." :
      `A search with these lines finds a map for what you ask here. The one above was found for: ${map.change}.`;
  };

  const draw = (holds) => {
    const left = 56, right = 690, top = 12, bottom = 330;
    const highest = Math.log(Math.max(2, ...data.smallest));
    const across = (n) => left + (right - left) * (Math.log(n) / highest), down = (share) => bottom - (bottom - top) * share;
    const marks = at("marks").children, seen = most(), [model, j] = coloured();
    for (let i = 0; i < data.smallest.length; i += 1) {
      const mark = marks[i], kept = holds[i] && shows(data, seen, i), share = detail(i), size = i === node ? 9 : i < count ? 4 : 6;
      mark.toggleAttribute("hidden", share === null || (i >= count && !at("maps").checked));
      if (share === null) continue;
      mark.setAttribute("transform", `translate(${across(Math.max(1, data.smallest[i])).toFixed(1)} ${down(share).toFixed(1)}) scale(${size})`);
      const state = kept ? "holds" : holds[i] ? "coarse" : "fails";
      mark.setAttribute("class", i === node ? "chosen" : model < 0 ? state : `${state} q${quintile(data.models[model].bounds[j], i)}`);
    }
    if (looked >= 0) marks[looked].classList.add("at");
    legend(model, j);
    const ticks = [1, 2, 5, 10, 20, 50, 100, 1000, 1e4, 1e5, 1e6, 1e7].filter((n) => Math.log(n) <= highest);
    at("ticks").replaceChildren(...ticks.map((n) => element("text", n.toLocaleString("en"), { x: across(n), y: bottom + 20, class: "mid" })));
  };

  // The model whose tightest values colour the points, and its bound; -1 for none.
  const coloured = () => (at("colour").value ? at("colour").value.split("-").map(Number) : [-1, -1]);

  const tightestOf = (i, j, of) => {
    const bound = data.models[i].bounds[j], value = bound.values[bound.at[of]].replace("~", ""), number = parse(value);
    return number === null ? value : shortest(Number(number[0]) / Number(number[1]));
  };

  // Of the distinct tightest values of a bound the fifth that a choice is in; the strictest is the last.
  const quintile = (bound, of) => {
    const fifth = Math.floor(5 * bound.at[of] / bound.values.length);
    return bound.larger ? fifth : 4 - fifth;
  };

  const legend = (i, j) => {
    at("states").hidden = i >= 0;
    at("quintiles").hidden = i < 0;
    if (i < 0) return;
    const bound = data.models[i].bounds[j];
    [0, 1, 2, 3, 4].forEach((q) => {
      const places = bound.values.map((_, place) => place).filter((place) => (bound.larger ? 0 : 4) + (bound.larger ? 1 : -1) * Math.floor(5 * place / bound.values.length) === q);
      const ends = places.length ? [places[0], places[places.length - 1]].map((place) => tightestOf(i, j, bound.at.indexOf(place))) : [];
      at(`q${q}`).textContent = !ends.length ? "none" : ends[0] === ends[1] ? ends[0] : `${ends[0]} to ${ends[1]}`;
    });
  };

  const update = () => {
    const given = asked(), faults = wrong(data, given);
    data.models.forEach((model, i) => model.bounds.forEach((_, j) => {
      const fault = faults.some(([a, b]) => a === i && b === j);
      field(i, j).setAttribute("aria-invalid", fault);
      at(`b-${i}`).classList.toggle("off", given[i] === null);
    }));
    at("choice").hidden = true;
    if (faults.length) {
      const bound = data.models[faults[0][0]].bounds[faults[0][1]];
      at("answer").className = "failed";
      at("answer").textContent = `${bound.parameter} is not a number that a spec may ask for. Write ${bound.whole ? "an integer " : ""}${bound.range}.`;
      return;
    }
    const holds = among(data, holding(data, given), at("maps").checked), held = holds.filter(Boolean).length;
    const every = at("maps").checked ? data.smallest.length : count;
    node = best(data, holds, most(), metric());
    draw(holds);
    at("answer").className = node < 0 ? "failed" : "verdict";
    if (node < 0) {
      const loose = best(data, holds, data.heights, metric());
      at("answer").textContent = loose < 0 ? "Nothing here holds this. Ask for less." :
        `${held.toLocaleString("en")} choices hold, and none of them shows that much. Accept a coarser column.`;
      return;
    }
    at("answer").textContent = `You can publish this: ${data.rows.toLocaleString("en")} rows in groups of at least ` +
      `${data.smallest[node].toLocaleString("en")} ${data.unit}. ${held.toLocaleString("en")} of ${every.toLocaleString("en")} choices hold.` +
      (mapOf(data, node) ? " The best is a map: each group has labels of its own." : "");
    at("choice").hidden = false;
    answer(holds);
    if (looked >= 0) at("looked").textContent = tell(looked, holds);
  };

  const look = (next) => {
    const marks = at("marks").children;
    if (looked >= 0) marks[looked].classList.remove("at");
    looked = next;
    marks[looked].classList.add("at");
    at("looked").textContent = tell(looked, holding(data, asked()));
  };

  const round = "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z", square = "M0-1.2L1.2 0L0 1.2L-1.2 0Z";
  at("marks").append(...data.smallest.map((_, of) => element("path", null, { d: of < count ? round : square })));
  data.models.forEach((model, i) => model.bounds.forEach((bound, j) => {
    const near = () => {
      const number = parse(field(i, j).value), side = bound.larger ? 1 : -1;
      const place = number === null ? -1 : bound.stops.findIndex((stop) => sign(parse(stop), number) * side >= 0);
      slider(i, j).value = place < 0 ? bound.stops.length - 1 : place;
      slider(i, j).setAttribute("aria-valuetext", field(i, j).value);
    };
    near();
    field(i, j).addEventListener("input", () => { at(`m-${i}`).checked = true; near(); update(); });
    slider(i, j).addEventListener("input", () => {
      field(i, j).value = bound.stops[slider(i, j).value];
      slider(i, j).setAttribute("aria-valuetext", field(i, j).value);
      at(`m-${i}`).checked = true;
      update();
    });
  }));
  data.models.forEach((_, i) => at(`m-${i}`).addEventListener("change", update));
  data.columns.forEach((_, i) => at(`c-${i}`).addEventListener("change", update));
  for (const id of ["metric", "maps", "colour"]) at(id).addEventListener("change", update);
  const picture = at("picture"), ordered = data.smallest.map((_, i) => i).sort((a, b) => data.smallest[a] - data.smallest[b] || detail(a) - detail(b));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const drawn = ordered.filter((of) => !at("marks").children[of].hasAttribute("hidden"));
    const place = drawn.indexOf(looked < 0 ? Math.max(node, 0) : looked);
    look(drawn[(place + (looked < 0 ? 0 : step) + drawn.length) % drawn.length]);
  });
  picture.addEventListener("click", (event) => {
    const place = [...at("marks").children].indexOf(event.target);
    if (place >= 0) look(place);
  });
  update();
}
