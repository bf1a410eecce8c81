"""The words that nearly every manifest has, as a dictionary for zlib.

A manifest is short, so compression alone learns these words too late. With them in advance, the row
of a turn takes a third less.
"""

from typing import Final

# Words that come often stand near the end. No row can be read with another dictionary, so a change
# of it needs another `FORMAT` of manifests.
MANIFEST_WORDS: Final = b"""\
","reply_tokens":400,"memories":null,"now":"2,"room.tags":[],"room.zones":[],"npc.tags":[],"npc.ke\
y":"room.key":"time.hour":"time.part":"night"},"generation.kind":"normal","event.kind":"say","char\
acter.tags":["character.name":"speaker.kind":"player","speaker.name":"speaker.rank":"Player"clock"\
:{"messages":,"seconds":,"turns":"dice":{"conversation":"/room/1","turn":"filled":{"guidance":"","\
history":{"earlier":[0,0,0],"first":"last":"left_out":[],"lore":{"lore_state":{"cooldown":{},"grou\
ps":{},"matched":[],"sticky":{}},"made_of":{"books":[["card":["components":{"game:":{"asleep":1,"c\
haracter_context":1,"context_buffer":1,"conversation_history":1,"dynamic_context":1,"entity_contex\
t":1,"goals":1,"pending_event":1,"semantic_memories":1,"system_prompt":1,"tool_result":1},"context\
":"conversation","newest_record":"notes":[["off":[],"policy":"","post_history_depth":4,"preset":nu\
ll,"providers":{},"scopes":[["game",""],["room","npc","placed":{},"sources":{"char_depth_prompt":{\
"creator_notes":{"scenario":{"sha256":"tools":[],"values":{"char":"user":"the visitor"}},"layout":\
"cache","limit_tokens":"messages":{"records":["runs":[["ordered",false,["history",true,1],["histor\
y",false,["dynamic",false,1],["event",false,1]],"tokens":["model":"request":{"body":{"max_tokens":\
400,"client":"profile":"default","strict_roles":false,"tools":"native"},"revisions":{"book:"card:"\
lore:"note:"component:mood":"segment":1,"sent_sha256":"shared_tokens":"silent":[["no key in the ne\
west 4 messages","stable_tokens":"tokens":"tools_record":"verdicts":[["activate","lore:true,"key '\
 in message  in the text of  in the event at ; budget  ->  tokens","constant",["recall","memory:["\
expand","component:false,"empty",0,null],false,"disabled",0,null],["budget","component:char_descri\
ption",true,"fits",["budget","component:char_personality",true,"fits",["budget","note:["budget","b\
lock:place",true,"fits",["budget","component:dialogue_examples",true,"fits",["budget","history",tr\
ue,"kept the newest  of  messages; cut before message ["budget","event",true,"always kept",,null],\
["place","component:["place","lore:,true,"at ID 10,true,"in the message of dynamic_context, after \
the history instead of at ID 10,true,"in the history, depth 2 from the newest: 2 messages follow",\
{"anchors":{},"break_reason":"append","breakpoints":[5,"broken_by":"by_origin":{"event":"framing":\
11,"history":"counter":"estimate","cut":"erased":false,"erased_blocks":[],"format":5,"inputs":{"an\
chors":{},"assembly":{},"blocks":[["speaker","Who speaks: "place","Place: . Present: "blocks_mode"\
:"latest","\
"""
