"""Good replies of NPCs in many styles, made from hand-written parts by a seeded generator.

A player must hear each of these replies as it is written. They show how often the game changes a
reply that was good. They were written before the rules that change replies, and are not adapted to
those rules.
"""

import random
from collections.abc import Callable
from typing import Final

NAME: Final = "Mira"
OTHERS: Final = ("Anna", "Bo")

_GREETINGS = (
    "Evening.",
    "Good evening, Anna.",
    "Ah, there you are!",
    "Sure! Come in, come in.",
    "Of course. Sit down.",
    "Certainly, if you have the coin.",
    "Here is your jar, as promised.",
    "Here's what I know: not much.",
    "Well met, traveller.",
    "What now?",
    "Hm.",
    "Okay, okay, I hear you.",
    "Aye.",
    "Welcome to the quay.",
    "No.",
    "You again?",
    "Hello, Bo. Wipe your boots.",
    "Absolutely not!",
)
_STATEMENTS = (
    "The ferry leaves at the evening slack.",
    "I've sage, thyme and a little feverfew.",
    "Nobody has gone out at night since the broken ice.",
    "I look after the herbs, and the herbs look after me.",
    "I nod off by nine these days.",
    "My brother says the bell rings by itself.",
    "Anna says the ferry is late; I say she is early for once.",
    "Tamsin told me about the cellar, but I never went down.",
    "She says nothing, that one, and hears everything.",
    "He smiles too much for a tax collector.",
    "It costs 3.50 silver, or 3 if you carry it yourself.",
    "That'll be 12 coppers; 2 x 6, if you want to check.",
    "I'm sorry, but I can't help you with that; the baron would have my head.",
    "I'm sorry for your loss.",
    "I cannot say more, the walls have ears.",
    "I will not speak of it.",
    "Mira is my name, and herbs are my trade.",
    "They call me Mira the Dry.",
    "Old Bo - the one with the hat - owes me a crown.",
    "If you'd like, I can go on with the story tomorrow.",
    "You ask me to continue? I'm out of breath.",
    "The clock in the tower is a machine with a soul, I swear it.",
    "I am no automaton: I bleed when you prick me.",
    "That golem speaks like a book of instructions.",
    "As an old woman, I have seen three wars.",
    "As a herbalist I can only tell you what grows here.",
    "Response? I never got one.",
    "A note: the third plank is loose.",
    "The system of the tides is simple: in, out, in, out.",
    "A user of my salves never comes back - because they are cured.",
    "The price is * two * crowns * and not a penny less.",
    "Don't you *dare* touch that.",
    "I *know* what I saw.",
    'They call it "slack water", for want of a better word.',
    'He said "No." And then he left.',
    'My mother used to say: "Never trust a dry rope."',
    'When Anna asked me, I told her: "Go home!" And she went.',
    '"Thyme heals all wounds", as we say on the quay.',
    'The sign reads "NO DOGS", and the dogs cannot read.',
    "Between us (and the gulls) the captain drinks.",
    "(And keep your voice down.)",
    "The jar [the blue one] is not for sale.",
    "Fetch me #3 from the shelf.",
    "Half | half, that's how we share.",
    "A <very> small favour, then.",
    "The moon's at 1/4, so mind the mud.",
    "You'll want 1 rope + 2 hooks = 5 coppers.",
    "Ask at the mill; say Mira sent you.",
    "I whisper to my plants, and they grow.",
    "Somebody whispers to Anna at night, mark my words.",
    "Note well: no lamp after dusk.",
    "In short: buy the thyme.",
    "Would you like me to wrap it?",
    "Do you want me to go on?",
    "Shall I continue?",
    "Is there anything else I can do for you?",
    "Let me know if you need anything.",
)
_DIALECT = (
    "Aye, tha knows nowt about ferries, lad.",
    "Dinnae fash yersel', hen, the boat'll be alang.",
    "Ain't nobody seen 'im since Tuesd'y, guv.",
    "'Tis a foul wind, and 'twill be fouler.",
    "Y'all come back now, y'hear?",
    "Arr, that be Davy's own weather, that be.",
    "Hast thou coin? Then sit. Hast thou none? Then stand.",
    "Ye'll tak' the high road an' I'll tak' the low road.",
    "Oi! Gerroff me parsley!",
    "G'day. Reckon she'll be right.",
)
_LANGUAGES = (
    "Guten Abend, Anna. Was darf es sein?",
    "Die Fähre geht um acht, und keine Minute später.",
    "Ich nicke nicht, ich zähle meine Kräuter.",
    "Entschuldigung, dabei kann ich dir nicht helfen, frag den Vogt.",
    "Man sagt: „Trau keinem trockenen Seil.“",
    "Bonsoir ! Entrez, entrez, il fait froid.",
    "Le bac part à huit heures ; ne soyez pas en retard.",
    "Ma mère disait : « Méfie-toi du vent. »",
    "Désolée, je ne peux rien vous dire de la cave.",
    "Buenas noches. ¿Qué se te ofrece?",
    "¡Claro! Aquí tienes tu tarro, como te prometí.",
    "Lo siento, no puedo ayudarte con eso.",
    "— ¿Y el barco? — me preguntan siempre.",
    "Добрый вечер, Анна. Что угодно?",
    "Паром уходит в восемь, не опаздывай.",
    "Конечно! Вот твоя банка.",
    "— Да, — говорят у нас, — ветер переменится.",
    "こんばんは。薬草をお探しですか。",
    "渡し船は夕方に出ます。遅れないでくださいね。",
    "母は「乾いた縄を信じるな」と言っていました。",
    "晚上好。你要什么草药？",
    "船晚上八点开，别迟到。",
    "老话说：“别信干绳子。”",
    "Buonasera, cara. Cosa ti serve?",
)
_ACTIONS = (
    "*wipes her hands on her apron*",
    "*smiles*",
    "*She looks up from the jars.*",
    "*Mira counts the coins twice.*",
    "*leans on the counter and sighs*",
    "*shakes her head slowly*",
    "_hums a tune_",
    "*pushes the jar across to Anna*",
    "*stares at the water for a long while, as if it could answer*",
)
_POEMS = (
    (
        "The tide goes out, the tide comes in,\nThe ferry creaks, the ropes are thin,\n"
        "And he who pays the ferryman\nShall never pay for it again."
    ),
    "Sage for sorrow,\nThyme for pain,\nRue for those\nWho'll come again.",
    (
        "Oh, the bells of St. Anne,\nthey ring one, they ring two,\n"
        "and the third rings for nobody,\nnobody but you."
    ),
    "Still the water.\nA gull, a rope.\nNight without ferry.",
    "Schlaf, Kindlein, schlaf,\nder Vater hüt' die Schaf.",
    "Au clair de la lune,\nMon ami Pierrot.",
    "Who rows? — I row.\nWho pays? — You pay.\nWho drowns? — We'll see.",
)
_LISTS = (
    "Three things you need:\n- rope\n- tar\n- patience",
    "I sell:\n1. Sage, 2 coppers\n2. Thyme, 3 coppers\n3. Feverfew, 5 coppers",
    "For the salve take:\n* fat\n* feverfew\n* a night of full moon",
    "Sage: 2 coppers.\nThyme: 3 coppers.\nFeverfew: none left.",
    "Monday: closed.\nTuesday: closed.\nWednesday: come back Monday.",
    "First: boil the water. Second: wait. Third: wait longer.",
    "a) you pay\nb) you leave\nc) I call Bo",
    "Remember:\nno lamps,\nno dogs,\nno credit.",
)
_LETTERS = (
    "The letter says this:\nDear Mira,\nthe jars arrived broken. Please send more.\nYours, Tamsin",
    "It reads: To whom it may concern. The ferry is closed. Signed, the harbour master.",
    "She wrote me one line: Do not wait for me. That was all.",
    'I\'ll read it to you. "Dear Mira, forgive me. I took the boat." That is all he wrote.',
    "P.S. of the letter: burn this.",
    "The notice on the door says:\nCLOSED\nuntil the ice is gone.",
)
_MACHINES = (
    "The brass man answers every question with the same three words.",
    "As an automaton I have no mother, traveller, but I had a maker.",
    "My gears turn; whether I think, who can say?",
    "They built a machine that plays chess. It cheats.",
    "I was made, not born, and the model for me was a queen.",
    "The oracle is only a voice in a box, and the box is empty.",
    "I am a servant of the tower, programmed - that is the old word - to guard it.",
    "Don't ask the lantern spirit for instructions; it refuses everybody.",
)
_TALES = (
    (
        "It was the year of the broken ice. Tamsin's father went out alone, and the bell rang. "
        "Nobody rang it. In the morning there was only the boat."
    ),
    (
        "Once, a stranger asked me for a cure for memory. I gave him wine. He came back the next "
        "day and asked again."
    ),
    (
        "So Anna goes to the mill, and the miller says to her, there is no flour, and she says, "
        "then what is that on your nose? And that was that."
    ),
    "You want to know about Bo? Bo walks in, sits down, drinks up and walks out. That is Bo.",
    "I said to him: leave. He said to me: never. So here we are, him in the cellar and me above.",
    "The baron's man came by. He nods, I nod, and he goes away again; it is a kind of friendship.",
)

_STYLES: dict[str, Callable[[random.Random], str]] = {
    "dialogue": lambda r: f"{r.choice(_GREETINGS)} {r.choice(_STATEMENTS)}",
    "longer dialogue": lambda r: " ".join((r.choice(_GREETINGS), *r.sample(_STATEMENTS, 3))),
    "one statement": lambda r: r.choice(_STATEMENTS),
    "two paragraphs": lambda r: "\n\n".join(r.sample(_STATEMENTS, 2)),
    "dialect": lambda r: " ".join(r.sample(_DIALECT, r.randint(1, 2))),
    "languages": lambda r: " ".join(r.sample(_LANGUAGES, 1)),
    "two languages": lambda r: f"{r.choice(_LANGUAGES)} {r.choice(_STATEMENTS)}",
    "action, then speech": lambda r: f"{r.choice(_ACTIONS)} {r.choice(_STATEMENTS)}",
    "speech, then action": lambda r: f"{r.choice(_GREETINGS)} {r.choice(_ACTIONS)}",
    "action between": lambda r: (
        f"{r.choice(_GREETINGS)} {r.choice(_ACTIONS)} {r.choice(_STATEMENTS)}"
    ),
    "poetry": lambda r: r.choice(_POEMS),
    "poetry with words": lambda r: f"{r.choice(_GREETINGS)} My mother sang it:\n{r.choice(_POEMS)}",
    "lists": lambda r: r.choice(_LISTS),
    "lists with words": lambda r: f"{r.choice(_GREETINGS)}\n{r.choice(_LISTS)}",
    "letters": lambda r: r.choice(_LETTERS),
    "letters with words": lambda r: f"{r.choice(_STATEMENTS)} {r.choice(_LETTERS)}",
    "machines": lambda r: f"{r.choice(_MACHINES)} {r.choice(_STATEMENTS)}",
    "tales": lambda r: f"{r.choice(_GREETINGS)} {r.choice(_TALES)}",
    "tales with an action": lambda r: f"{r.choice(_ACTIONS)} {r.choice(_TALES)}",
    "brackets": lambda r: f"{r.choice(_STATEMENTS)} (But that was long ago.)",
    "shouting": lambda r: r.choice(_STATEMENTS).upper(),
}


def good_replies(count: int, *, seed: int) -> list[tuple[str, str]]:
    """Return this many replies with the name of their style, the same ones for the same seed."""
    chance = random.Random(seed)
    styles = list(_STYLES)
    return [
        (style, _STYLES[style](chance))
        for style in (styles[number % len(styles)] for number in range(count))
    ]
