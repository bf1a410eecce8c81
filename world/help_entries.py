"""Entries for the command `help`, for visitors of the demo game."""

HELP_ENTRY_DICTS = [
    {
        "key": "harbour",
        "aliases": ["start", "demo"],
        "category": "General",
        "text": """
Welcome ashore. The people here answer when you speak to them.

    |wlook|n                         what is around you, and who
    |wsay Oren, when does the ferry leave?|n
    |wtalk oren when does the ferry leave?|n
    |wask oren about the ferry|n
    |wwhisper oren = can you keep a secret?|n

Whoever you name answers; whoever you are already talking with answers too.

Builders make somebody of their own in three lines; |wai/start|n lists what else there is.

    |wcard/create Mira = Mira sells herbs on the quay. She knows every cure but her own.|n
    |wcard/spawn Mira|n
    |wsay Mira, what do you sell?|n
        """,
    },
    {
        "key": "prompts",
        "aliases": ["inspect"],
        "category": "Building",
        "locks": "read:perm(Builder)",
        "text": """
Every answer was made from a prompt, and every piece of it can be read and changed.

    |wai oren|n                      is he on, which model answers, what happened last
    |wai/context oren|n              the prompt of his last turn, piece by piece
    |wai/why oren = mood|n           why a piece was in it, or why not
    |wcomponent|n                    the components of the game by ID, low ones stand first
    |wcomponent/depth mood = 2|n     two messages above the newest
    |wcomponent/preview oren|n       the prompt as it would be sent now
    |wlore|n                         what people here know; wakes by its words
    |wlore/test oren = The ferry?|n  what that would wake in him, and why
    |wnote oren = ...|n              an author's note for him; |wnote oren/scene = ...|n: another
    |wcard oren|n                    his card: what of it stands where, and who granted that
    |wcard/create Mira = ...|n       a character of your own; |wcard/spawn Mira|n puts her here
    |wcard/import|n                  the card files there are; one is read, approved, assigned

See also |whelp component|n, |whelp card|n, |whelp note|n and |whelp ai|n.
        """,
    },
    {
        "key": "wiki",
        "aliases": ["knowledge"],
        "category": "Building",
        "locks": "read:perm(Builder)",
        "text": """
Ebbwick has a wiki, in which Oren, Brida and Ismay look things up, and a secret that Brida guards.
They do so with a model that can call tools; without one they speak from memory.

    |wkb|n                           the knowledge bases
    |wkb/pages harbour|n             the pages of one
    |wkb harbour/Night Ferry|n
    |wkb/search harbour = fare for a dog|n
    |wkb/requires harbour/Instructions:Create/Source/Interview|n
    |wai/tools oren|n                what Oren may do: he looks things up
    |wai/tools oren = -knowledge_base_search|n
                                 from now on he does not, and is told of no wiki
    |wkb/hints secret|n              what may be told of the secret, word for word
    |wkb/set secret/mediation = hints|n
                                 from now on nothing else of it is told
    |wlorekeeper Write an article about the leek show.|n
                                 a model, once one is set, drafts a page from the wiki
    |wlorekeeper/context|n           what it was shown, page by page
    |wkb/drafts|n                    the drafts that wait for you

See also |whelp kb|n and |whelp lorekeeper|n.
        """,
    },
]
