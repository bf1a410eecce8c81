// Keeps pages new: home, the watch, and a turn in a pane that follows what is said in the game.
// The policy of the pages lets no script be made of text, so this file decides what is asked when.
(() => {
  "use strict";
  const SECONDS = 2;

  // Home and the watch: if nothing changed, the answer is 304 and nothing is drawn again. What the
  // reader has the focus in stays as it is.
  async function renew(live) {
    const answer = await fetch(location.href, { headers: { "If-None-Match": live.dataset.tag } });
    if (answer.status !== 200 || live.contains(document.activeElement)) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("live");
    if (next) live.replaceWith(document.importNode(next, true));
  }

  // A pane: to the newest turn, unless an edit is being tried on the one that is shown.
  async function followOn(pane) {
    if (new URLSearchParams(location.search).has("with")) return;
    const answer = await fetch(pane.dataset.newest);
    if (answer.status !== 200) return;
    const { address } = await answer.json();
    if (address && address !== location.pathname + location.search) location.replace(address);
  }

  setInterval(() => {
    if (document.hidden) return;
    const live = document.getElementById("live");
    const pane = document.getElementById("pane");
    // A server that restarts does not answer, and is asked again.
    if (live) renew(live).catch((error) => (live.dataset.away = error.message));
    if (pane) followOn(pane).catch((error) => (pane.dataset.away = error.message));
  }, 1000 * SECONDS);
})();
