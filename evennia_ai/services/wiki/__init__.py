"""Knowledge bases in a MediaWiki, reached through its API in the bridge's thread."""
