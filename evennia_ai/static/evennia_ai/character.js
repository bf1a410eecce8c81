// The page of a character: the conversation stays new, and forms count tokens while one types.
// Everything works without this script: links and buttons of the page do the same.
(() => {
  "use strict";
  const SECONDS = 1.5;
  const TYPING_SECONDS = 0.5;
  let tag = "";

  // True while a reader uses the conversation, so that nothing moves under the hands.
  function isInUse(chat) {
    return chat.contains(document.activeElement) || chat.querySelector("details[open]");
  }

  async function renew() {
    const chat = document.getElementById("chat");
    if (!chat?.dataset.chat || document.hidden || isInUse(chat)) return;
    const answer = await fetch(chat.dataset.chat, { headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.status !== 200 || isInUse(chat)) return;
    const isFirst = !tag;
    tag = answer.headers.get("ETag") ?? "";
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("chat");
    // The first answer shows what the page shows already.
    if (next && !(isFirst && next.textContent.trim() === chat.textContent.trim())) {
      chat.replaceWith(document.importNode(next, true));
    }
  }

  // Shows the tokens of each field and what a model would read, as the button "Preview" does.
  async function preview(form) {
    const sent = new FormData(form);
    sent.set("do", "preview");
    const answer = await fetch(`${location.pathname}?format=json`, { method: "POST", body: sent });
    if (answer.status !== 200) return;
    const told = await answer.json();
    for (const [name, count] of Object.entries(told.preview.tokens)) {
      const place = form.querySelector(`[data-tokens="${CSS.escape(name)}"]`);
      if (place && count !== null) place.textContent = `${count} tokens`;
    }
    const total = form.querySelector("[data-total]");
    if (total) total.textContent = `${told.preview.total} tokens`;
    const texts = document.getElementById("preview-texts");
    if (texts) {
      texts.replaceChildren(...told.preview.texts.map((one) => {
        const text = document.createElement("pre");
        text.textContent = one.text;
        return text;
      }));
    }
  }

  function watchTyping(form) {
    let timer = 0;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => preview(form).catch((error) => (form.dataset.away = error.message)), 1000 * TYPING_SECONDS);
    });
  }

  // Shows the hour next to the slider while it moves.
  function watchHour(slider) {
    const place = document.querySelector("[data-hour]");
    slider.addEventListener("input", () => (place.textContent = `${slider.value}:00`));
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("input[type=range]").forEach(watchHour);
    document.querySelectorAll("form[data-preview]").forEach(watchTyping);
    if (document.getElementById("chat")) {
      // A server that restarts does not answer, and is asked again.
      setInterval(() => renew().catch((error) => (document.body.dataset.away = error.message)), 1000 * SECONDS);
    }
  });
})();
