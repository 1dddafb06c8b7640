"""Questions to a page in a browser, as its scripts; and the page's own program without a browser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qblock.report.render import scripts


def program(script: str, data: dict[str, Any]) -> Any:
    """A page's program with its data, in a JavaScript engine."""
    context = pytest.importorskip("quickjs", reason="quickjs has no wheel for this Python").Context()
    context.eval(scripts(script))
    context.set("embedded", json.dumps(data))
    context.eval("const data = JSON.parse(embedded)")
    return context


CONTRASTS = """
() => {
  const colour = (text) => {
    const parts = /rgba?\\(([^)]+)\\)/.exec(text)?.[1].split(/[ ,\\/]+/).map(Number);
    return parts && [parts[0], parts[1], parts[2], parts[3] ?? 1];
  };
  const over = (above, below) => [0, 1, 2].map((i) => above[i] * above[3] + below[i] * (1 - above[3])).concat(1);
  const luminance = (of) => of.slice(0, 3)
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (text, behind) => {
    const [dark, light] = [luminance(text), luminance(behind)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const layer = colour(getComputedStyle(at).backgroundColor);
      if (layer && layer[3] > 0) layers.unshift(layer);
    }
    const cell = element instanceof SVGElement && element.parentElement.querySelector(":scope > rect.cell");
    if (cell) {
      const style = getComputedStyle(cell), fill = colour(style.fill);
      layers.push([fill[0], fill[1], fill[2], fill[3] * Number(style.fillOpacity)]);
    }
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const result = [];
  const add = (element, style, text) => {
    const at = behind(element), own = colour(element instanceof SVGElement ? style.fill : style.color);
    const opacity = Number(style.opacity);
    result.push([ratio(over([own[0], own[1], own[2], own[3] * opacity], at), at), text.trim().slice(0, 40)]);
  };
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const text = nodes.currentNode.textContent, element = nodes.currentNode.parentElement;
    if (!text.trim() || element.closest("script, style, title") || !element.getClientRects().length) continue;
    add(element, getComputedStyle(element), text);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    const style = getComputedStyle(element, "::before");
    if (style.content !== "none" && element.getClientRects().length) add(element, style, element.dataset.label);
  }
  return result;
}
"""
"""The contrast of each text with what is behind it (WCAG 2.2), labels of cards among them, and how it begins."""

CARDS = """
() => [...document.querySelectorAll("table")].filter((table) => table.getClientRects().length).flatMap((table) => {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const shown = (cell) => cell.tagName === "TD" && (cell.textContent.trim() || cell.querySelector("svg"));
  return [...table.tBodies[0].rows].flatMap((row) => [...row.cells].flatMap((cell, i) => {
    if (!shown(cell)) return [];
    const style = getComputedStyle(cell, "::before"), box = cell.getBoundingClientRect();
    const within = box.left >= 0 && box.right <= innerWidth && box.height > 0 && style.visibility === "visible";
    return [[names[i], style.content, within && cell.scrollWidth <= cell.clientWidth]];
  }));
})
"""
"""Of each cell that says something, below the name of its row: what its column is called, its label as the style has
it, and whether all of it is in the window."""

CUT = """
() => [...document.querySelectorAll("table, figure, pre")].filter((part) => part.getClientRects().length)
  .flatMap((part) => [part, ...part.querySelectorAll("th, td, svg")])
  .filter((part) => part.getBoundingClientRect().right > document.body.getBoundingClientRect().right + 1)
  .map((part) => [part.tagName, part.textContent.slice(0, 40)])
"""
"""Tables, drawings and what is in them, so far as it goes beyond the sheet."""
