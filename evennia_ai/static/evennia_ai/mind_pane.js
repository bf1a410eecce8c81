// A plugin of Evennia's web client: a pane with the newest prompt of an NPC (`ai/watch`).
// To be loaded after the web client's own plugins; see docs/build/web.md.
(() => {
  "use strict";
  const COMPONENT = "evennia_ai_mind";
  let shown = null; // the frame, while the pane is open

  function register() {
    const layout = window.plugins.goldenlayout?.getGL();
    // GoldenLayout calls it with `new`, so it is no arrow.
    layout?.registerComponent(COMPONENT, function (container, state) {
      const frame = document.createElement("iframe");
      frame.title = "The mind of an NPC";
      frame.src = state.address;
      frame.style.cssText = "width: 100%; height: 100%; border: 0;";
      container.getElement().append(frame);
      container.on("destroy", () => (shown = null));
      shown = frame;
    });
  }

  function open(address) {
    if (shown) {
      shown.src = address;
      return;
    }
    const root = window.plugins.goldenlayout.getGL().root;
    const beside = root.getItemsByType("row")[0] ?? root.contentItems[0];
    beside.addChild({
      title: "Mind",
      type: "component",
      componentName: COMPONENT,
      componentState: { address },
    });
  }

  window.plugin_handler.add(COMPONENT, {
    init() {
      register();
      // By its name, and not as what nobody knows: of that Evennia's own plugins print an error.
      window.Evennia.emitter.on(COMPONENT, (args) => open(String(args[0])));
    },
  });
})();
