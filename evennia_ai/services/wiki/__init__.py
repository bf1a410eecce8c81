"""Use a MediaWiki as a knowledge base, through its API. Requests run in the bridge's thread."""
