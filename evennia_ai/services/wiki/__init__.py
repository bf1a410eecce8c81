"""Knowledge in a MediaWiki: asked over its API, in the bridge's thread, never in the game's."""
