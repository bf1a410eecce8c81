// A turn's column: rows of the history are dropped at another depth, or moved by keys.
// Every move is a link of the page; this script only follows it. The page works without it.
(() => {
  "use strict";
  const KEYS = { ArrowUp: "deeper", ArrowDown: "shallower", ArrowLeft: "earlier", ArrowRight: "later" };
  const DEPTH = "__depth__";

  // How many messages of the conversation stand behind a row.
  function depthOf(row) {
    let depth = 0;
    for (let next = row.nextElementSibling; next; next = next.nextElementSibling) {
      if (next.hasAttribute("data-said")) depth += 1;
    }
    return depth;
  }

  function follow(address) {
    htmx.ajax("GET", address, { target: "#trial", select: "#trial", swap: "outerMorph", push: address });
  }

  function press(event) {
    const part = event.target.closest("[data-drag]");
    if (!part || event.target !== part) return;
    const move = event.altKey ? KEYS[event.key] : event.key === "Delete" ? "off" : "";
    const link = move && part.querySelector(`[data-move="${move}"]`);
    if (link) {
      event.preventDefault();
      follow(link.getAttribute("href"));
    }
  }

  // A row that moved is another element than before: who stood on it stands on it again.
  let stood = "";

  function remember() {
    stood = document.activeElement?.closest("[data-origin]")?.dataset.origin ?? "";
  }

  function standAgain() {
    if (!stood || document.activeElement !== document.body) return;
    document.querySelector(`[data-origin="${CSS.escape(stood)}"]`)?.focus();
  }

  function takeHold() {
    const column = document.getElementById("column");
    if (!column || Sortable.get(column)) return;
    new Sortable(column, {
      draggable: ".row, .break",
      handle: ".handle",
      // Only inside the history: there is no depth anywhere else.
      onMove: (event) => event.related.matches("[data-said], .injected"),
      onEnd: (event) => {
        const part = event.item.querySelector("[data-drag]");
        if (part && event.oldIndex !== event.newIndex) {
          follow(part.dataset.drag.replace(DEPTH, String(depthOf(event.item))));
        }
      },
    });
  }

  document.addEventListener("DOMContentLoaded", takeHold);
  document.addEventListener("htmx:before:swap", remember);
  document.addEventListener("htmx:after:swap", () => {
    takeHold();
    standAgain();
  });
  document.addEventListener("keydown", press);
})();
