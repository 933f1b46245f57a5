# What the phylactery command says to people, in English. Every language has the same messages with the same values: see
# docs/guides/add-a-language.md. Columns of tables are parted by commas.

## Chat, and the commands that start services

approve_verb = APPROVE
undo = undo the last change
you = you
agent = agent
sent_file = { $name } ({ $size } bytes, { $type }): in the agent's files as { $path }
hint = Try: read welcome.txt   ·   write "hello" to notes.txt   ·   /help
files = files the agent may touch
former_files = { $folder } holds files from before each person had a folder of their own. The agent no longer reaches them, because it is not known whose they are. If they are yours: AGENT_DATA_DIR={ $data } python -m phylactery_agent workspaces give local local
model = model
model_at = { $model } at { $url }
model_fallback = fallback
model_none = none: static mode does files, reminders, memory and forms by fixed rules; set PHYLACTERY_MODEL_BASE_URL and PHYLACTERY_MODEL to add one
single_user = approvals: one person uses this, so you are asked where a team would ask somebody else
approval = May I do this?
approvals = May I do these { $count } things?
no_such_number = There is no such number: I asked about { $count }.
no_such_id = Nothing is waiting here under that name: { $id }.
which =
    Several things are waiting. Say which one, for example { $command } { $number }:
    { $calls }
answer_one_of = /approve { $number }: I do it, once   ·   /reject { $number }: I leave it
tool = tool
risk = risk
expires = expires in { $minutes } min
answer = yes (or /approve): I do it, once   ·   no (or /reject): I leave it
answer_several = yes or /approve: all { $count }  ·  no or /reject: none  ·  /approve 1, /reject 2: that one
or_type = or type: { $text }
nothing_waits = Nothing is waiting for an answer.
gone =
    { $state ->
        [APPROVED] That was approved already. Nothing was changed.
        [REDEEMED] That was approved already. Nothing was changed.
        [REJECTED] That was turned down already. Nothing was changed.
        [CANCELLED] That was withdrawn. Nothing was changed.
        [EXPIRED] That has expired. Nothing was changed. Write “again” if you still want it.
       *[other] That is no longer waiting for an answer. Nothing was changed.
    }
card_changed = The question has changed since you saw it, so nothing was answered. This is how it is now:
not_shown = I could not show you what it is about, so nothing was answered. This is how it is now:
show_whole =
    { $number ->
        [0] A part is left out: /show shows all of it before you answer
       *[other] A part is left out: /show { $number } shows all of it before you answer
    }
typed_before = That was typed before I asked, so it answers nothing.
no_turn = Nothing has happened yet: say something first.
no_spans = There is no trace of that here: the services write it below another data folder.
bye = Stopping the services …
stopped = Stopped. Everything is kept in { $folder }.
unknown = No such command: { $text }. /help shows what there is.
elsewhere = This approval is answered at RiskGate, not here: phylactery approvals show { $id }
help =
    Say what you want in your own words, for example: read welcome.txt
    When I ask first, answer yes or no (or /approve, /reject).
    /undo takes back your last change of a file.
    /attach FILE sends a file with your next message.
    Esc or Ctrl-C stops an answer; /quit leaves.
    More: /help approvals, /help keys, /help language, /help trace
help_approvals =
    A clear yes or no answers the question I just asked; one word more answers nothing.
    /approve and /reject answer it too when you asked for other things meanwhile.
    /approve 2 and /reject 2 answer one of several.
    /show, or /show 2, shows all of a long text of which a part is left out.
help_keys =
    While I answer: Esc or Ctrl-C stops it, twice stops waiting. What you type meanwhile is kept.
    At the prompt: Ctrl-C clears what you typed; twice leaves, as Ctrl-D and /quit do.
    While the agent is not available, what you say is kept and sent once it is back; /drop discards it.
help_language =
    I answer in the language of the conversation, English or Spanish.
    phylactery run --language es always answers in Spanish; the variable PHYLACTERY_LANGUAGE does the same.
help_trace =
    /trace draws what happened with your last message, across the three services.
    /details shows each step and decision from now on, and hides them the next time.
attached = { $name } goes with your next message ({ $count } in all).
attach_unreadable = { $path } cannot be read.
details_on = Each step and decision is shown from now on.
details_off = Only what is said and asked is shown from now on.
fate_died = { $service } stopped by itself; starting it again in { $seconds } s. Its log: { $log }
fate_back = { $service } is running again.
fate_given_up = { $service } keeps stopping by itself, so it is not started again. Its log: { $log }
working = working … { $seconds } s · Esc stops
stopping = stopping …
stops_later = It stops as soon as it can. You will see here how it ends.
leave = Ctrl-C again to leave; /quit leaves too.
kept = Kept ({ $count }); it is sent as soon as possible. /drop discards it.
dropped = Discarded: { $count }. What was already on its way may still be answered.
nothing_kept = Nothing is waiting to be sent.
unsent = Not sent: { $count }.
failed = That did not work: { $message }
no_text = That is not UTF-8 text, so it was not sent.
in_use = The services of { $folder } are already running (one at { $target }). Talk to them with phylactery chat, or choose another folder with --data-dir and other ports.
late = The answer is taking long. It is shown here as soon as it arrives.
away = The agent does not answer at { $target }. Is it running? phylactery up starts it.

## phylactery erase

erase_confirm = Erase everything that agent, riskgate and memory hold about { $who }, for good?
erase_yourself = you
erase_counts = erased: { $counts }
erase_values = erased: the arguments of { $erased } entries of its audit log; the decisions stay on record
erase_nothing = nothing was left to erase
erase_kept = { $count ->
    [one] the arguments of { $count } call stay while its approval is open; have it answered or withdrawn
   *[other] the arguments of { $count } calls stay while their approvals are open; have them answered or withdrawn
 }
erase_proof = proof: { $proof }
erase_failed = not erased: { $why }
erase_not_asked = not asked, because the agent might still write to it
erase_operator = only an operator may erase there; ask one to run: phylactery erase { $who }
erase_nameless = it needs your name, which memory did not give; run: phylactery erase YOUR-NAME
erase_away = nothing answers at { $target }
erase_done = Everything is erased, the files of { $who } included. What is in shared folders stays, and so do files of an earlier version that belong to nobody, and what was sent.
erase_left = Not everything is erased. To go on once that is fixed: { $command }

## phylactery runs and graphs

runs_none = No runs.
runs_no_doubt = No effect has an unknown outcome.
runs_more = There is more: --page { $token }
graphs_columns = graph,default,version,how it works
runs_columns = run,status,reason,conversation,started
runs_call_columns = run,tool call,tool,state,conversation,proposed
runs_step_columns = step,status,tries,what
runs_node_columns = superstep,node,ms,goes to,tool call,stops with
runs_event_columns = event,time,what
runs_budget_columns = budget,used,limit
runs_budgets = supersteps,tool calls,model calls,tokens,money (millionths),active seconds
runs_no_limit = none
runs_retry_of = Repeats { $id }.
runs_effects = Already done before, and unknown to the new run:
runs_retry_effects = what it did may happen a second time ({ $calls }). Look at: phylactery runs show { $id }. Then, if you want that: phylactery runs retry { $id } --acknowledge-effects
runs_retry_NOT_FAILED = only a failed run can be retried: { $id } did not fail
runs_retry_RETRIED = { $id } was already retried; see: phylactery runs list
runs_retry_WORDS_GONE = the words of { $id } are no longer stored; say them again
runs_retry_NO_TOOLS = { $id } was started with other tools than you may use; retry it as its caller
runs_retry_THREAD_BUSY = its conversation is busy; wait until that ends, or cancel it
runs_doubt_hint = To settle one: phylactery runs resolve RUN CALL --happened or --did-not-happen
runs_confirm = Cancel { $id } for good?
runs_which = say what happened: --happened or --did-not-happen
runs_settled = { $id }: { $state } ({ $resolution })

## phylactery tools

tools_columns = tool,state,risk,effect,source,what it does
tools_on = on
tools_on_unchecked = on, unchecked
pin_new = NEW { $name }, which its server calls { $tool }:
pin_changed = CHANGED { $name }, which its server calls { $tool }:
pin_gone = GONE { $name }, which its server called { $tool }:
pin_same = Every tool is as it was pinned.
pin_confirm = A model will read these descriptions. Pin the tools as they are shown?
pin_done = { $count ->
    [one] { $count } tool is pinned in { $file }. An agent that is running reads it when it starts again.
   *[other] { $count } tools are pinned in { $file }. An agent that is running reads them when it starts again.
 }
pin_unusable = { $server }: { $tool } cannot be pinned: { $why }
tools_unchecked = RiskGate has not sent its catalog yet; it still checks each call.
service_away = nothing answers at { $target }; phylactery up starts the services

## phylactery threads

threads_none = No conversations.
threads_columns = conversation,state,graph,events,opened,last event
threads_confirm = Delete { $id } and everything kept of it, for good?
threads_deleted = Deleted: { $id }

## phylactery memory

memory_none = Nothing is remembered.
memory_no_match = Nothing that is remembered matches.
memory_no_outputs = No outputs are kept.
memory_no_profile = The profile is empty.
memory_forgotten = Forgotten: { $id }
memory_untrusted = [from a tool or the web] { $text }
memory_confirm = Erase everything memory holds about { $who }, for good?
memory_yourself = you
unchanged = Nothing was changed.
memory_erased = Erased. { $counts }
memory_exported = { $count ->
    [one] { $count } record in { $file }
   *[other] { $count } records in { $file }
 }
memory_broken = the export broke off, so the file is not complete. Try again
memory_no_file = the export broke off, so there is no { $file }. Try again
memory_broken_outputs = damaged, so nothing else is known of them; restore a backup: { $pointers }
memory_bad_value = --set takes name=value, for example --set city=Lima, not '{ $text }'
memory_columns = memory,kind,trust,since,until,text
memory_profile_columns = name,value,said by,since,until,memory
memory_output_columns = output,tool,characters,conversation,created
memory_read_output = To read one, say in the chat: read output { $pointer } from 0 to 4000
memory_bad_query = say what to look for, in at most 2,000 characters: phylactery memory search tea
memory_bad_id = a memory's id looks like mem_…; phylactery memory list shows yours
memory_not_found = you have no memory { $id }; phylactery memory list shows yours
memory_bad_name = a name starts with a lower-case letter, then lower-case letters, digits, _ and .: city
memory_bad_text = a value is one line of 1 to 500 characters; --remove takes a name away
memory_bad_page = that page did not come from this command; start again without --page
memory_bad_user = a user's name holds letters, digits and _.:@-, at most 128 of them
memory_file_exists = { $file } already exists; choose a new file
memory_erase_rest = The agent and riskgate keep what they have; phylactery erase covers all three.

## phylactery approvals

approval_fields = approval,state,tool,risk,class,requester,conversation,expires
approval_columns = approval,state,tool,risk,class,requester,expires
approval_marked = unprintable or look-alike characters are marked
approval_cut = { $count } characters are not shown; to see all of them: phylactery approvals show { $id } --full
approval_cut_in_full = { $count } characters are more than can be shown: do not approve what you have not seen
approval_nothing = Nothing is waiting.
approval_none = None.
approval_closed = { $id } is already { $state }; only a PENDING one can be answered
approval_json_yes = with --json nobody is asked: look at it with phylactery approvals show, then add --yes
approval_confirm = Approve exactly this, once?
origin_USER = the user's own words
origin_REGISTRY = a registry
origin_POINTED = text the user pointed to
origin_FOREIGN = other text, or nowhere

## Answers to questions: the words for yes, parted by commas

yes_words = y,yes
yes_no = { $question } [y/N]: 

## Words of RiskGate's contract: states of approvals and risks

approval_word_PENDING = PENDING
approval_word_APPROVED = APPROVED
approval_word_REDEEMED = REDEEMED
approval_word_REJECTED = REJECTED
approval_word_EXPIRED = EXPIRED
approval_word_CANCELLED = CANCELLED
approval_word_LOW = LOW
approval_word_MEDIUM = MEDIUM
approval_word_HIGH = HIGH
approval_word_CRITICAL = CRITICAL

## Words of memory's contract: kinds, sources and trust

memory_word_FACT = fact
memory_word_PREFERENCE = preference
memory_word_EPISODE = episode
memory_word_USER = user
memory_word_ASSISTANT = assistant
memory_word_TOOL = tool
memory_word_WEB = web
memory_word_SYSTEM = system
memory_word_UNTRUSTED = untrusted

## Words of runs: their states, those of tool calls and steps, and what became of an effect

runs_word_QUEUED = QUEUED
runs_word_RUNNING = RUNNING
runs_word_SUSPENDED = SUSPENDED
runs_word_DONE = DONE
runs_word_FAILED = FAILED
runs_word_CANCELLED = CANCELLED
runs_word_DEAD = DEAD
runs_word_proposed = proposed
runs_word_denied = denied
runs_word_started = started
runs_word_finished = finished
runs_word_in_doubt = in doubt
runs_word_pending = pending
runs_word_running = running
runs_word_done = done
runs_word_failed = failed
runs_word_blocked = blocked
runs_word_HAPPENED = HAPPENED
runs_word_DID_NOT_HAPPEN = DID_NOT_HAPPEN

## Events in the chat (/details): labels of at most 8 letters

event_label_memory = memory
event_label_route = route
event_label_step = step
event_label_propose = propose
event_label_result = result
event_label_notice = notice
event_label_run = run
event_label_riskgate = riskgate

## Events: states, decisions and reasons

event_state_TRANSCRIPT_FULL = memory keeps no more of this conversation; go on in a new one
event_state_SECRETS_REDACTED = secrets were removed
event_state_PERSONAL_DATA = personal data
event_state_NOT_INSPECTED = it could not be inspected
event_state_DO_NOT_STORE = nothing of this is kept
event_state_low = low
event_state_medium = medium
event_state_high = high
event_state_critical = critical
event_state_pending = pending
event_state_running = running
event_state_done = done
event_state_failed = failed
event_state_blocked = blocked
event_state_success = success
event_state_error = error
event_state_evicted = kept in memory
event_state_ALLOW = ALLOW
event_state_AUTH_REQUIRED = AUTH_REQUIRED
event_state_BLOCKED = BLOCKED
event_state_QUEUED = QUEUED
event_state_RUNNING = RUNNING
event_state_SUSPENDED = SUSPENDED
event_state_DONE = DONE
event_state_FAILED = FAILED
event_state_ANSWERED = answered
event_state_AWAITING_APPROVAL = waiting for a person's approval
event_state_AWAITING_USER_INPUT = waiting for what you say
event_state_CANCELLED = cancelled
event_state_INTERRUPTED = another message asked to go first
event_state_APPROVAL_REJECTED = the approval was rejected
event_state_APPROVAL_EXPIRED = the approval expired
event_state_APPROVAL_CANCELLED = the approval was withdrawn
event_state_NOTHING_WAITS = nothing was waiting for an answer
event_state_TOOL_FAILED = a tool failed
event_state_STEP_LIMIT = reached the limit of steps
event_state_TOOL_CALL_LIMIT = reached the limit of tool calls
event_state_ACTIVE_TIME_LIMIT = reached the time limit
event_state_TOO_MANY_ATTEMPTS = was tried too often
event_state_REPEATED_CALL = the same call was repeated
event_state_ALTERNATING_CALLS = two calls alternated without end
event_state_EFFECT_IN_DOUBT = it is not known whether it was done
event_state_GATE_UNAVAILABLE = RiskGate is not available
event_state_MEMORY_UNAVAILABLE = memory is not available
event_state_GRAPH_CHANGED = the agent was updated meanwhile

## Events: details

event_not_read = not read ({ $reason })
event_characters = { $size ->
    [one] { $size } character
   *[other] { $size } characters
 }
event_kept = kept as { $pointer }
event_in = in what you said
event_out = in the answer
event_in_result = in a tool's result

## Kinds of personal data that were found

event_found_iban = IBAN
event_found_card = card number
event_found_es_nie = NIE
event_found_es_dni = DNI
event_found_es_cif = CIF
event_found_us_ssn = social security number
event_found_email = e-mail address
event_found_phone = phone number
event_found_ip_address = IP address

## phylactery handoff

human = a person
handoff_now_OPEN = A person was asked to join.
handoff_now_CLAIMED = { $name } has the conversation and answers here.
handoff_now_RELEASED = The agent answers again.
handoff_now_CLOSED = Nobody joined; the agent goes on.
handoff_word_OPEN = waiting
handoff_word_CLAIMED = taken
handoff_word_RELEASED = given back
handoff_word_CLOSED = closed
handoff_word_REQUESTED = asked again for a person
handoff_word_KEYWORD = asked for it
handoff_word_TIMEOUT = took too long
handoff_word_SENTIMENT = is upset
handoff_word_LLM_INTENT = needs a person
handoff_word_COMPLETION = form done
handoff_word_REQUEST = requested
handoff_word_OPENED = called a person
handoff_word_REQUEUED = back in the queue
handoff_word_EXPIRED = claim expired
handoff_word_NOTE = note
handoff_word_REPLY = reply
handoff_word_MESSAGE = message
handoff_columns = id,state,why,person,reason,since,with
handoff_none = Nobody waits for a person.
handoff_claimed = You have { $id } until { $until }. What you type now goes to { $person }.
handoff_replied = Sent.
handoff_noted = Noted.
handoff_released = { $id } is with the agent again.
handoff_requeued = { $id } waits in the queue again.
handoff_before = What was said before:
handoff_unread = (The earlier conversation cannot be read right now.)
handoff_unkept = (a message that is not to be kept)
handoff_form = Form { $form }: { $state }
handoff_prompt = queue
handoff_hint = /list · /claim 1 · /show · /note TEXT · /release SUMMARY · /queue SUMMARY · /help · /quit
handoff_help =
    /list shows who waits. /show 1 shows a conversation, /claim 1 takes it.
    Once you have one, what you type is sent to the person, and the agent says nothing.
    /note TEXT is for your colleagues alone.
    /release SUMMARY gives the conversation back to the agent; the person can read the summary.
    /queue SUMMARY puts it back for a colleague. /quit leaves; a claim you keep expires by itself.
handoff_no_such = There is no such conversation here: { $name }. /list shows who waits.
handoff_have_none = You have no conversation. /list shows who waits, /claim 1 takes the first.
handoff_have_one = You have { $id } already: /release or /queue gives it back first.
handoff_lost = Your claim on { $id } is over; nothing more is sent there. /claim takes it again.
handoff_not_sent = Not sent: { $text }
handoff_left = { $id } is still yours until its claim expires.

## phylactery forms

forms_columns = form,version,title,submits with
forms_fields = field,type,required,sensitive,question
forms_submission_columns = form,status,thread,run,at
forms_stored_columns = id,form,person,at,submitted
forms_none_stored = Nothing was submitted.
forms_read_as_stored = Form { $form }: { $tool } is read as submit_form. Each submission is stored on its own; list them with: phylactery forms submissions --everyone
forms_none = There are no forms. AGENT_FORMS_DIR names the folder they are read from.
forms_no_submission = You have submitted no form.
forms_required = required
forms_sensitive = sensitive
forms_checked = Forms that can be used: { $forms }. Faults: { $faults }.
forms_tested = Stories: { $stories }, messages: { $turns }, not as expected: { $failures }.
forms_covered = Nodes taken: { $steps } of { $all_steps }; edges: { $edges } of { $all_edges }.
forms_missing = Not taken: { $what }
forms_unknown = there is no form '{ $form }' in this folder; there is: { $known }
forms_would_call = Nothing was sent. The agent would ask you, and then call { $tool } with { $args }
forms_made = Wrote { $form } and { $story }. Next: phylactery forms check { $folder }
