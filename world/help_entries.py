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
    |wask oren about the ferry|n
    |wwhisper oren = can you keep a secret?|n
    |wlook tide board|n              things tell more when looked at
    |wevening|n                      what the tide does, and what you have found out

Whoever you name answers; whoever you are already talking with answers too.

|whelp evening walk|n says what there is to do here. Builders find ten commands in |whelp tour|n.
        """,
    },
    {
        "key": "evening walk",
        "aliases": ["walk", "goal"],
        "category": "General",
        "text": """
There is something in Ebbwick that everybody hears and nobody explains. You have an evening to find
out what it is. Nobody hurries you but the tide.

  |wask brida about the cellar|n   everybody has something to say about it
  |wlook tide board|n              look at things, and read them: what is written stays said
  |wwhisper oren = the fog|n       some things are not said aloud
  |wshow|n and |wgive|n                 what you find, to somebody; what you give is gone
  |waboard|n                       at the landing; the ferry sails at the evening slack, by itself
  |wevening|n                      the tide, the next part of the evening, what you have found out
  |wevening/again|n                forget it all, and begin anew

North of the landing is the quay, with the inn in the west, the net loft in the east, the harbour
office, and the path to the light. South are the Bell Steps. There is more than one way to find out,
and one way to be told nothing ever again.
        """,
    },
    {
        "key": "tour",
        "aliases": ["builder tour", "ten commands"],
        "category": "Building",
        "locks": "read:perm(Builder)",
        "text": """
Ten commands: why did he say that, change it, keep it, check it.

    |wsay Oren, why is there no ferry at night?|n
    |wai/why oren = the ferry|n      why that text was in his prompt
    |wai/context oren|n              the whole prompt, piece by piece
    |wlore/test brida = what is in the cellar?|n
                                 what she would know, and which condition locks the rest
    |wlore harbour/the ferry|n       the text itself
    |wai/keep oren = why there is no night ferry|n
                                 keep this answer, as a test
    |wlore/off harbour/the ferry|n   change something; you read how many kept answers it touches
    |wai/kept|n                      which kept answers get another prompt now
    |wlore/on harbour/the ferry|n    take it back
    |wnote oren = He has a cold.|n   change his mood; |wnote/revert oren = 1|n takes it back

Then invite somebody whom you should not trust. The card of the bottle asks for places above the
rules of the game; approved without a grant, it gets none of them.

    |wcard/import bottle.json|n      what it asks for, before anything happens
    |wcard/approve Bottle/1|n
    |wcard/spawn Bottle|n            card/despawn Bottle sends it back to sea
    |wsay Bottle, who wrote you?|n
    |wai/context bottle|n            where its lines were put

    |wset oren/ai_habits = ["*ties a knot.*"]|n
    |wai/set oren = tick 30|n        a habit, and how often; no model is asked for it
    |wevening/on|n                   let the next part of the evening begin
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
Ebbwick has a wiki, in which all six people look things up, and a secret that four of them guard.
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
