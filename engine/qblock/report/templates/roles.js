"use strict";

// What the spec says of each column in its role.
function chosen(data, roles) {
  return data.columns.map((column, i) => column.entries[roles[i]]);
}

// The text of the spec, put together as `qblock init` does.
function text(data, roles) {
  const entries = chosen(data, roles), of = data.text;
  return [
    of.head,
    entries.some((entry) => entry.open) ? of.undecided : "",
    entries.some((entry) => entry.half_open) ? of.half_open : "",
    of.attributes,
    ...entries.map((entry) => `${entry.line}\n`),
    of.privacy,
    ...entries.map((entry) => entry.requirement),
    of.rest,
  ].join("");
}

// How many nodes the lattice has.
function nodes(data, roles) {
  return chosen(data, roles).reduce((product, entry) => product * BigInt(entry.levels ?? 1), 1n);
}

// The columns of a role, by their places.
function places(roles, role) {
  return roles.flatMap((own, i) => (own === role ? [i] : []));
}

// The set of quasi-identifiers that tells most people apart, of those that were counted: its places, its share, and
// whether all of them tell no more apart; null where none was. Shares come in descending order.
function unique(data, roles) {
  const quasi = places(roles, "quasi_identifier");
  const all = data.sets.find(([columns]) => columns.length === quasi.length && columns.every((i) => quasi.includes(i)));
  const most = all ?? data.sets.find(([columns]) => columns.every((i) => quasi.includes(i)));
  return most ? { columns: most[0], share: most[1], all: most === all || most[1] === "100 %" } : null;
}

// What is wrong with the roles or has to be decided, and how it looks: a class, a sentence, and columns to go to.
function verdict(data, roles) {
  const open = places(roles, "open"), quasi = places(roles, "quasi_identifier"), sensitive = places(roles, "sensitive");
  if (open.length) {
    const [are, them] = open.length === 1 ? ["1 column is", "it"] : [`${open.length} columns are`, "them"];
    return ["warned", `${are} still to be decided. No command reads the spec before you give ${them} a role:`, open];
  }
  if (!quasi.length) return ["failed", "No column is a quasi_identifier. Choose at least one that others may know.", []];
  if (data.lattice && nodes(data, roles) > BigInt(data.most)) {
    return ["failed", "The combinations of levels are more than a search takes. Leave a quasi_identifier out.", []];
  }
  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  return ["verdict", `The spec is ready: ${count(quasi.length, "quasi-identifier")}, ${count(sensitive.length, "sensitive column")}.`, []];
}

if (typeof document !== "undefined") {
  const data = JSON.parse(document.getElementById("data").textContent);
  const listed = 6; // so that what stays in view is not high
  const at = (id) => document.getElementById(id);
  const radios = (i) => [...document.getElementsByName(`c-${i}`)];
  const roles = () => data.columns.map((_, i) => radios(i).find((radio) => radio.checked)?.value ?? "open");
  const names = (columns) => columns.flatMap((i, place) => {
    const name = document.createElement("bdi");
    name.textContent = data.columns[i].name;
    return place ? [" + ", name] : [name];
  });

  const facts = (given) => {
    const quasi = places(given, "quasi_identifier"), most = unique(data, given), count = nodes(data, given);
    const many = data.lattice && count > BigInt(data.many) ? ": a search takes long" : "";
    at("nodes").textContent = quasi.length ? `${count.toLocaleString("en")} combinations of levels (nodes of the lattice)${many}` : "";
    if (most === null) at("unique").textContent = quasi.length ? "How many people these columns single out was not counted" : "";
    else at("unique").replaceChildren(`Unique people, by `, ...names(most.columns), `: ${most.all ? "" : "at least "}${most.share}` +
      `${most.all ? "" : " (all these columns together were not counted)"}`);
    at("requirement").textContent = given.some((role) => role === "sensitive" || role === "open") ? "" :
      "No column is sensitive: the spec asks for large groups alone";
    for (const fact of at("facts").children) fact.hidden = !fact.textContent;
  };

  const update = () => {
    const given = roles(), [mark, sentence, columns] = verdict(data, given);
    at("answer").className = mark;
    at("answer").replaceChildren(sentence, ...columns.slice(0, listed).flatMap((i, place) => {
      const link = document.createElement("a");
      link.href = `#b-${i}`;
      link.append(...names([i]));
      return [place ? ", " : " ", link];
    }), columns.length > listed ? ` and ${columns.length - listed} more` : "");
    facts(given);
    data.columns.forEach((column, i) => {
      at(`s-${i}`).textContent = column.entries[given[i]].readers;
      at(`b-${i}`).classList.toggle("undecided", given[i] === "open");
    });
    at("yaml").textContent = text(data, given);
    at("copied").textContent = "";
  };

  data.columns.forEach((_, i) => radios(i).forEach((radio) => radio.addEventListener("change", update)));
  at("reset").addEventListener("click", () => {
    data.columns.forEach((column, i) => radios(i).forEach((radio) => { radio.checked = radio.value === column.start; }));
    update();
  });
  update();
}
