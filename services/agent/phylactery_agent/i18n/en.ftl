# What the agent says to people, in English. Every language has the same messages with the same values: see
# docs/guides/add-a-language.md. A sentence says what happened or what is needed, then what to do; it uses the person's
# own words and no internal names.

## Conversation

greeting = Hello! How can I help?
greeting_by_name = Hello, { $name }! How can I help?
memory_degraded = (My memory is not available: I am answering without our conversation so far and what I remember about you. Nothing is lost.)
thanks = You're welcome.
farewell = Goodbye!
empty = Your message is empty.
fine = Fine.
dropped = All right, I leave it at that.
stays_done = All right, it stays as it is.
asks_anyway = I cannot keep such a wish. A change of a file that you clearly ask for I make at once, and “undo” takes it back; where I am not sure, I ask you first.
cannot_files = I can't delete, empty, copy, move or rename files, or change or take out lines in them, and I have done nothing. I can read and write them, add lines to them, and undo my last change.
kept_in_mind = I will remember: { $text }
told_of_oneself = Thanks for telling me. To make sure that I remember it, say: remember that { $clause }
program = I'm a program: I read and write files, remind you of things and remember what you ask me to.
you_asked = You asked me: “{ $request }”
you_asked_nothing = You have not asked me for anything yet, or it was too long ago.
time = It is { $weekday }, { $date }, { $clock } ({ $zone }).
help =
    I can do this:
    { $lines }
    More: { $topics }.
sticker = I can't make sense of stickers; write to me instead.
attachment_only_shown = I did not understand what else to do with it.
listening = I'm listening.
stays_write_file = (What I wrote to “{ $name }” is still there; “undo the last change to { $name }” takes it back.)
stays_create_reminder = (The reminder “{ $name }” is still set; “cancel the reminder { $name }” drops it.)
forget_none = I remember nothing that matches “{ $what }”, so there is nothing to forget.
forget_which = That could be any of these. Say which one, in its words:
    { $found }
forget_all = I forget one thing at a time. This is what I remember; say “forget” and which:
    { $found }
    To have everything about you erased, ask whoever runs this service. (For the operator: phylactery erase.)
no_match_shown = (Nothing that matches these words.)
cannot_forget = I can't forget here what I remember already, and I have changed nothing. (For the operator: phylactery memory forget.)
beyond = I can't do that. I can read and write files, set reminders and remember what you tell me.
help_ask = “help { $topic }”
help_files = files: read notes.txt, write "hello" to notes.txt, search for “bread”
help_reminders = reminders: remind me to pay the rent tomorrow at 9 am
help_memory = memory: remember that I prefer tea, what do you know about me?
help_mail = mail: send an email to ana@example.org: I am late
help_web = web: read https://example.org/prices
help_forms = forms: { $phrases }
help_more = other tools
topic_files = files
topic_reminders = reminders
topic_memory = memory
topic_mail = mail
topic_web = web
topic_more = more
unknown = I didn't get “{ $clause }”; “help” shows what I can do.
guest_cannot = I cannot do that for you here. I can set reminders, remember things for you, fill in a form with you, or ask a person of our team to join.
tool_off = I can't { $tool } here. (For the operator: { $why }.)
off_NOT_CONFIGURED = set { $setting }
off_NOT_PINNED = nobody has accepted this tool yet; see “phylactery tools list”
off_DESCRIPTION_CHANGED = the tool has changed since it was accepted; see “phylactery tools list”
off_NOT_IN_CATALOG = RiskGate's catalog does not have this tool
off_SCHEMA_DIFFERS = RiskGate's catalog describes this tool differently
off_SERVER_UNAVAILABLE = the tool's server is not available, or no longer offers it
off_NOT_FOR_GUESTS = this tool is for users, and whoever writes is a guest
result_cut =
    { $output }…
    { $more ->
        [one] ({ $more } more character, which memory could not keep.)
       *[other] ({ $more } more characters, which memory could not keep.)
    }
result_kept = (The result is already in memory.)
evicted =
    { $label }
    It is a long text, and I keep all of it. It begins:
    { $head }
    …
    It ends:
    { $tail }
    To read more: read output { $pointer } from 0 to 4000
step_blocked = Not done: { $reasons }
step_failed = { $tries ->
    [one] I could not complete “{ $step }”: { $error }
   *[other] I could not complete “{ $step }” in { $tries } attempts: { $error }
 }
use = use “{ $name }”
use_tool = use “{ $name }” from { $source }
tool_said = { $who } said: “{ $said }”
ask_help = What would you like me to do? You can give me another instruction.
not_done = Not done: { $steps }
approval_required = May I { $tools }? Answer yes or no.
approvals_required = May I do these { $count } things: { $tools }? Answer yes or no.
approval_required_other = Another person has to approve this before I { $tools }; I'll go on when they answer. Say “cancel” to withdraw it.
waits = { $count ->
    [one] I still need your yes or no: { $actions }.
   *[other] { $count } actions are waiting for your yes or no: { $actions }.
 }
waits_other = { $count ->
    [one] Another person still has to approve this: { $actions }. Say “cancel” to withdraw it.
   *[other] Another person still has to approve { $count } actions: { $actions }. Say “cancel” to withdraw them.
 }
stopped = All right, cancelled: { $steps }.
stopped_unknown = Of this I do not know whether it was done, so please check: { $steps }.
stopped_done = That had been done already: { $steps }.
holding = All right, I am waiting.
waits_words = I still need your answer to this: “{ $question }”
waits_steps = Still to do: { $steps }. Say “continue” to go on, or “cancel”.
quoted = “{ $text }”
waits_unnamed = do what I asked you about
why_asked = The question says why I ask. After a yes I do exactly what it shows, once; after a no I leave it.
answer_to_nothing = It is not clear what you are answering, so I changed nothing.
which_one = I cannot tell which of these you mean, or whether it is a yes, so I did nothing of it.
say_which = Say which, for example: “yes to the first, no to the second”, “yes to all” or “no to all”.
say_yes_or_no = Answer yes or no.
too_many_wait = Too many things are already waiting here, so I did not start this: answer one of them first.
still_pending = Nobody has answered yet whether I may { $tool }.
code_missing = The code in your answer was lost. Please send it again.
code_wrong = { $left ->
    [one] The code is wrong. You have 1 try left, or say “cancel”.
   *[other] The code is wrong. You have { $left } tries left, or say “cancel”.
 }
approval_wrong_id = That is not waiting for your answer: it { $why }. I changed nothing.
ahead_approved = Noted, yes to this: { $steps }.
ahead_rejected = Noted, no to this: { $steps }.
approval_refused = I can't accept that answer: { $why }.
nothing_waits = Nothing is waiting for your answer here: that { $why }.
nothing_waits_at_all = Nothing is waiting for your answer here.
rejected = All right, I won't.
rejected_of_several = All right, I did not do this: { $action }.
cancelled = This was cancelled, and I did not do it: { $action }.
expired = Nobody answered in time, so I did not do this: { $action }. Say “again” if you still need it.
gate_unavailable = I cannot check right now whether I may do that, so I did not do it. Ask me again in a moment.
gate_unavailable_waiting = I cannot check your answer right now, so I did nothing. I am still waiting for it: answer again in a moment.
effect_in_doubt = I tried to { $tool } and cannot tell whether it worked, so I will not repeat it: please check.
step_limit = That is more than I can do at once. Say “continue” to go on.
tool_limit = I stopped: I have done { $limit } things in a row, and cannot do more at once. Ask me for the rest separately.
too_many_steps = That is too many steps at once; ask for at most { $limit }. I did none of them.
nothing_to_do = There is nothing left to do.
state_PENDING = is waiting elsewhere
state_APPROVED = has already been approved
state_REDEEMED = has already been used
state_REJECTED = was rejected
state_EXPIRED = has expired
state_CANCELLED = was cancelled
state_UNKNOWN = is not one of yours
state_UNASKED = cannot be checked right now

## Requests that were only partly understood

doubt_negation = In “{ $clause }” you say that something should not be done, and I am not sure what. I have done nothing. Ask again without that part; if it belongs to the text, put the text in quotes.
doubt_exclusion = In “{ $clause }” you leave something out, and I cannot do it that way. I have done nothing. Name only what you do want.
doubt_condition = “{ $clause }” depends on a condition, and I cannot tell whether it holds. I have done nothing. If you want it now, ask without the condition.
doubt_hypothetical = “{ $clause }” sounds like an idea rather than a request. I have done nothing. If you want it, just ask for it.
doubt_report = In “{ $clause }” you report what somebody else said. I have done nothing. If you want it, ask for it yourself.
doubt_statement = I read no request in “{ $clause }”: it tells something or names a thing. I have done nothing. If you want it, ask for it; if it is a text, put it in quotes.
doubt_permission = “{ $clause }” is about what may be done. I have done nothing. If you want it, just ask for it.
doubt_past = “{ $clause }” is about something past. I have done nothing. Say what you want now; if it belongs to the text, put the text in quotes.
doubt_future = “{ $clause }” is about something for later. I have done nothing. Say what you want now; if it belongs to the text, put the text in quotes.
doubt_irony = “{ $clause }” sounds like a joke. I have done nothing. If you mean it, ask again without that part.
doubt_retraction = In “{ $clause }” you seem to take something back. I have done nothing. If it belongs to the text, put the text in quotes; otherwise ask again without it.
doubt_announce = “{ $clause }” is about the words, not about doing it. I have done nothing. If you want it done, just ask for it.
doubt_idiom = “{ $clause }” may be just a figure of speech. I have done nothing. Say it in other words.
doubt_question = “{ $clause }” sounds like a question. I have done nothing. If you want it done, ask without the question mark.
doubt_which_file = In “{ $clause }” I cannot tell which file you mean. Ask again with its name, for example: read notes.txt
doubt_what_content = In “{ $clause }” I cannot tell which text you mean. I have done nothing. Ask again with the text in quotes.
doubt_copy = I cannot copy one file to another, and I have done nothing about “{ $clause }”. Ask me to read you the first one, or give me in quotes the text to write.
doubt_beside = In “{ $clause }” I cannot tell where the text ends and what you want done with it begins. I have done nothing. Put the text in quotes, and the rest outside them.
doubt_which_time = In “{ $clause }” I am not sure about the day or the time. I have done nothing. Say it all together, for example: remind me on Monday at 9 am to call Ana

## Words that no pattern reads, but that resemble what people say (rules/likely.py)

offer = Do you mean “{ $request }”? Answer yes, or say it in other words.
perhaps = If I understood you right:
how_are_you = All is well here, thanks. What can I do for you?
praised = Thank you, glad it helped.
displeased = I am sorry that was no help. Tell me what you want as plainly as you can: “help” shows what I can do.
no_harm = No harm done.
laughs = 🙂
sympathy = Thanks for telling me. If something would help, such as a reminder or a note, just say so.
smalltalk = I see. If you want something written down or remembered, just say so.
mention = Understood: nothing was done. If you want something done, ask me for it.
mail_again = I can't change an e-mail that I have shown you: answer no to it, and tell me the new one, for example: send an email to ana@example.org: I arrive at 9
more_how = Of a long text I showed you say “read output” with its pointer and the range, for example: read output out_… from 4000 to 8000. Of anything else there is no more.
handoff_say = To talk to a person, say: “I want to talk to a person”.
language = I answer in the language you write in: English or Spanish.
history_none = I have changed nothing in this conversation so far.
history_done = In this conversation I have done this: { $done }.
pending_some = This waits for your answer:
repeat = I said: { $reply }
say_again = To have the last thing you asked for once more, say “again”; I ask you first where I did before.
repeat_nothing = I have not said anything yet.
form_list = You can fill in: { $forms }. Say its name to begin.
form_list_none = There are no forms here.
ask_file = Which file do you mean? Say its name, for example: notes.txt
ask_topic = What shall I look for? For example: search for “bread”
ask_append = What shall I add, and to which file? For example: add milk to shopping.txt
ask_write = What shall I write, and to which file? For example: write "call Bob" to plan.txt
ask_when = When shall I remind you? Say it all together, for example: remind me to call Ana tomorrow at 9 am
ask_repeat = I can repeat a reminder by days, weeks, months or years, on days of the week or one day of the month. Say it for example as: remind me to call Ana every monday at 9 am
ask_reminder = Which reminder do you mean? For example: cancel the reminder to water the plants
ask_time_half_unsaid = “{ $when }”: in the morning or in the evening? Say which, for example: in the evening
ask_day_not_in_all_months = “{ $when }”: not every month has that day. Say the 28th or an earlier day, or one date
ask_time_past = “{ $when }” has already passed. When shall I remind you?
ask_time_not_understood = I do not know which moment “{ $when }” is. Say it for example as: tomorrow at 9 am
zone_told = Your times are those of { $zone } from now on; it is { $clock } there.
not_the_rest = I did not understand “{ $clause }”, so that part is not done.
cannot_the_rest = I cannot do “{ $clause }”, so that part is not done.
ask_what = What shall I remind you of? Say it all together, for example: remind me to call Ana tomorrow at 9 am
ask_move = Which reminder do you mean, and what is the new time? Cancel it and set it anew, for example: remind me to call Ana tomorrow at 10 am
ask_mail = To which address, and what shall it say? For example: send an email to ana@example.org: I arrive at 9
ask_note = What shall I note? For example: note that the boiler is fixed
unknown_near = { $unknown } Did you want to { $near }?
near_or = { $one } or { $other }
near_list_files = see your files
near_read_file = read a file
near_search_files = search your files
near_file_info = know about a file
near_list_reminders = see your reminders
near_recall_fact = hear what I remember about you
near_read_notes = hear what you noted
near_write_file = write a file
near_append_file = add to a file
near_edit_file = change a line of a file
near_delete_file = delete a file
near_copy_file = copy a file
near_rename_file = rename a file
near_undo = undo a change
near_add_note = note something
near_set_reminder = set a reminder
near_move_reminder = move a reminder
near_cancel_reminder = cancel a reminder
near_send_mail = send an e-mail
near_remember_fact = have something about you remembered
near_forget_fact = have something about you forgotten
cannot_weather = I can't look up the weather. I can remind you to check it, for example: remind me tomorrow at 8 am to check the weather
cannot_web = I can't search the internet. I can search your files, for example: search for “garden”
cannot_news = I can't look up news or results. I can search your files, for example: search for “team”
cannot_call = I can't make phone calls. I can remind you to call, for example: remind me at 6 to call Ana
cannot_message = I can't send messages to other apps. I can send an e-mail, for example: send an email to ana@example.org: I am late
cannot_read_mail = I can't read your mail; I can only send some, for example: send an email to ana@example.org: I am late
cannot_calendar = I can't see or change a calendar. I can set reminders, for example: remind me on Friday at 9 of the meeting
cannot_payment = I can't pay or see an account. I can remind you to do it, for example: remind me tomorrow at 9 am to pay the rent
cannot_purchase = I can't order, book or buy anything. I can remind you to do it, or keep a list, for example: add milk to shopping.txt
cannot_music = I can't play anything. I can read and write files, set reminders and remember what you tell me.
cannot_picture = I can't make or change pictures. I can write texts to files, for example: write "a red house" to ideas.txt
cannot_translate = I can't translate without a model. I can show you the text, for example: read letter.txt
cannot_calculate = I can't calculate or convert without a model. I can note the numbers, for example: note that the rent is 700
cannot_compose = I can't write a text of my own without a model. I can write down yours, for example: write "happy birthday" to card.txt
cannot_summarize = I can't sum up a text without a model. I can show you the whole of it, for example: read report.txt
cannot_knowledge = I can't answer questions about the world without a model. I can search your files, for example: search for “Peru”
cannot_advice = I can't give advice without a model. I can read and write files, set reminders and remember what you tell me.
cannot_navigation = I can't look up ways or places. I can remember an address for you, for example: remember that the dentist is at 5 Main Street
cannot_device = I can't switch anything on or off. I can remind you to do it, for example: remind me at 10 to lock the door
cannot_joke = Jokes and games are beyond me. I can read and write files, set reminders and remember what you tell me.

## The model, and what it said

model_away = The model is not reachable right now, so I can only do simple things: files, reminders, mail.
model_refuses = The model refuses my requests, which only the operator of this service can fix; until then I can only do simple things: files, reminders, mail.
model_still_away = Without the model, which is still not reachable, I don't understand that. “help” shows what I can do.
model_too_long = This conversation is longer than the model can take, so I answer without it; in a new conversation it works again.
model_spent_today = I have used the model as much for you as I may today; until tomorrow I can only do simple things.
model_spent = I have used the model as much as I may for one request; I'll go on without it.
model_not_inspected = I could not check what I was about to show the model, so I'll go on without it.
model_unusable = The model gave no answer I can use; I'll go on without it.
model_plan_invalid = The model gave no plan I can follow; I'll go on without it.
claim_send = Nothing was sent.
claim_write = Nothing was written or changed.
claim_delete = Nothing was deleted or cancelled.
claim_remind = No reminder was set.
claim_other = None of that was done.
claim_unsure = I do not know whether that was done; check before you ask for it again.
claim_again = If you want it, ask me again with all the details.
result_withheld = Done; I cannot show the result right now.
reply_withheld = I have an answer, but I cannot show it.
not_inspected = (I cannot check what I was about to quote right now, so I do not show it. Ask me again in a moment.)
secrets_redacted = (I removed keys or passwords from the answer.)
words_redacted = I do not keep passwords, PINs or keys: where you wrote one, whatever I do with your message says { $masks }.
words_redacted_form = Outside the form I keep { $masks } where you wrote a password, a PIN or a key.
not_stored = (I do not remember this message. What I need to answer it is encrypted, and erased a day after this is done; the record of actions stays.)
react_step_limit = I stopped: this takes more steps than I can do at once. Ask me for it in parts.
react_round_limit = I stopped: this takes more going back and forth than I can do at once. Ask me for it in parts.
react_call_invalid = The model asked for something that does not exist or does not fit, and it was not done.

## Errors, by their code: they follow a colon

error_REPEATED_CALL = the same call was repeated
error_ALTERNATING_CALLS = two calls alternated without getting anywhere
error_MODEL_CALL_INVALID = the model proposed no valid call
error_MODEL_AWAY = this step needs the model, which is not available
error_DO_NOT_STORE = you asked me to keep nothing from this message
error_NAME_ALIKE = there is already one whose name looks the same (capitals, spaces or dots differ); write its name exactly, or choose another one
error_NAME_AMBIGUOUS = two files or folders there have that name, with its accents written differently; rename one of them
error_NOT_A_FOLDER = that is not a folder
error_NOTHING_TO_UNDO = there is no change to undo in this conversation; if it was in another one, name the file
error_NOT_NOTED = I cannot change files right now, and I changed nothing; tell whoever runs this service
error_CHANGED_SINCE = the file has changed since I last looked at it, so I leave it as it is
error_REPLACES_UNKNOWN = this was asked before I was updated, and I no longer know which version of the file you meant; I left it as it is, so please ask me again
error_UNDO_NOT_KEPT = I could not keep what was there before, so I have changed nothing
error_UNDO_OTHER = something else was done or taken back in between; say “undo” again to take back the last thing
error_UNDO_FAILED = it could not be put back; please look at it yourself
error_UNDO_LOST = the earlier version can no longer be read
error_UNDO_GONE = the earlier version is no longer kept
error_KNOWN_BEFORE = I knew that before you asked me to remember it
error_NOT_REVERSIBLE = that cannot be taken back from here
error_REMINDER_RANG = its time has passed
error_REMINDER_CANCELLED = it was cancelled already
error_PATTERN_INVALID = it is not a valid search expression; search for it as plain text
error_TIME_NOT_UNDERSTOOD = I did not understand when; say it as “tomorrow at 9 am”, “in 20 minutes” or “2027-03-01 09:00”
error_TIME_HALF_UNSAID = in the morning or in the evening? Say which, for example: in the evening
error_DAY_NOT_IN_ALL_MONTHS = not every month has that day; say the 28th or an earlier one, or one date
error_TIME_PAST = that time has already passed
error_REPEAT_INVALID = I did not understand how often; say it as “every monday at 9 am” or “FREQ=WEEKLY;BYDAY=MO”
error_TIME_ZONE_UNKNOWN = I do not know that time zone; name one like America/Lima
error_TOO_MANY_REMINDERS = you already have as many reminders as allowed; cancel one first
error_REMINDER_NOT_FOUND = you have no active reminder with that id or text
error_REMINDER_AMBIGUOUS = several reminders say that; cancel it by its id (“what reminders do I have?” shows them)
error_SUBMISSIONS_UNAVAILABLE = forms cannot be submitted here
error_REMINDERS_UNAVAILABLE = reminders are not available here
error_URL_REFUSED = that address is not valid, or can be read in more than one way
error_HOST_NOT_ALLOWED = that site is not among those I may read (for the operator: AGENT_HTTP_ALLOW)
error_ADDRESS_REFUSED = that site is in a private network, which I may not read
error_HTTP_UNREACHABLE = that site could not be reached, or its answer broke off
error_HTTP_STATUS = that site has a problem, or is too busy, right now
error_HTTP_REFUSED = that site does not have that page, or does not let me read it
error_TOO_MANY_REDIRECTS = the page redirects too often
error_RESPONSE_TOO_LARGE = the page is too large
error_CONTENT_TYPE_REFUSED = what is there is not text
error_ADDRESS_INVALID = the e-mail address or the subject is not valid; nothing was sent
error_RECIPIENT_REFUSED = the mail server does not accept that recipient; nothing was sent
error_MAIL_REFUSED = the mail server refused the message; nothing was sent
error_MAIL_UNAVAILABLE = the mail server cannot be used; nothing was sent
error_NOT_FOUND = there is no such file or folder
error_NOT_A_FILE = that is not a file
error_NOT_UTF8 = it is not a text file (UTF-8)
error_FILE_EMPTY = the file is empty
error_FILE_TYPE_REFUSED = I only send texts, PDF and Word documents, images and audio, and this is none of them
error_HANDED_OFF = a person of our team has the conversation now, so I send nothing
error_FILES_UNAVAILABLE = files cannot be sent here
error_FILE_TOO_LARGE = the file is too large
error_PATH_INVALID = that file name is not valid
error_PATH_OUTSIDE_SANDBOX = I can only use files in my folder
error_READ_ONLY = that folder is shared, and I may only read there
error_ACCESS_DENIED = the system denies access
error_IO_ERROR = the disk reported an error
error_SERVER_UNAVAILABLE = the server of this tool is not available right now
error_SERVER_BUSY = the server of this tool is too busy right now
error_CALL_REFUSED = the server of this tool did not accept the request
error_TIMEOUT = it took too long
error_TOOL_ERROR = the service I asked reports a failure
error_TOOL_FAILED = the tool failed
error_MEMORY_UNAVAILABLE = the memory service is not available
error_SECRET_PASSWORD = I do not keep passwords or PINs
error_SECRET_CARD = I do not keep card or account numbers
error_SECRET_KEY = I do not keep access keys or tokens
error_MEMORY_NOT_FOUND = I do not remember that any more
error_MEMORY_LIMIT = I already keep as many memories of yours as I can; ask me to forget some first
error_ATTACHMENT_INVALID = that is not an attachment
error_DOCUMENT_ENCRYPTED = the document is locked with a password; send it without one
error_DOCUMENT_TOO_LARGE = the document is too large to read here; send a shorter one
error_DOCUMENT_UNREADABLE = the document is damaged, or not what it claims to be
error_DOCUMENT_WITHOUT_TEXT = there is no text in the document; it may consist of scanned pages
error_DOCUMENT_TIMEOUT = the document took too long to read; send a shorter one
error_MEDIA_WITHOUT_TEXT = I found nothing in it that I could put into words
error_MEDIA_UNAVAILABLE = what I read images and audio with is not answering; send it again later, or write it down
error_MEDIA_TIMEOUT = reading it took too long; send it again later, or write it down
error_IMAGE_NOT_CONFIGURED = I cannot look at images here; write down what it says
error_AUDIO_NOT_CONFIGURED = I cannot listen to audio here; write down what it says
error_OUTPUT_NOT_FOUND = there is no such output
error_OUTPUT_NOT_REHYDRATABLE = it is too long to bring back whole; read it in parts or search it
error_RANGE_PAST_END = the range starts past the end
error_TOO_MANY_PENDING = too many approvals are already waiting; answer those first
error_TOO_MANY_ASKED = too many approvals were asked for in the last hour; wait a while
error_REJECTED_BEFORE = exactly this was answered with no a moment ago, so I do not ask again yet; if you still want it, ask me for it in a few minutes
error_APPROVER_NOT_ELIGIBLE = the person who approved it may no longer approve it
error_APPROVAL_EXPIRED = the approval has expired
error_APPROVAL_NOT_PENDING = the approval is no longer valid
error_UNKNOWN_TOOL = I do not know that tool
error_INVALID_REQUEST = the service does not accept those values
error_INVALID_ARGUMENTS = the values given are not valid for it
error_TOOL_NOT_ALLOWED = you are not allowed to use this tool
error_TOOL_DISABLED = this tool is switched off right now; `phylactery tools list` says why
error_RECEIPT_REFUSED = the permission from RiskGate is not for this call
error_APPROVAL_ARGS_MISMATCH = what was approved is not what was about to be done
error_RESULT_NOT_SHOWN = RiskGate did not accept the result of an earlier step, and cannot decide on this one without it
error_TASK_NOT_FOUND = your request has expired at RiskGate; ask me again
error_TASK_ENDED = your request is already closed at RiskGate; ask me again
error_TASK_FULL = your request has become too long for RiskGate; ask me for the rest separately
error_TASK_CONFLICT = this does not match what RiskGate recorded of your request; ask me again
error_ALREADY_REDEEMED = the permission has already been used
error_CANCELLED = it was cancelled
error_NOT_DONE = somebody has confirmed that it was not done
error_POLICY_CHANGED = the policies have changed
error_BUDGET_EXCEEDED = it would go over a budget
error_ASK_USED_UP = what you asked for has already been done; if you want it again, ask me again
error_PERMIT_RETRACTED = you took it back
error_FROZEN = an operator has stopped this for now
error_DECISION_REVOKED = an operator has withdrawn the permission
error_RECORD_ALTERED = what is stored about this does not match the record; tell whoever runs this service
error_DECISION_TOO_OLD = too much time has passed since it was allowed; ask me again
error_NOT_ELIGIBLE = another person has to answer it at RiskGate
error_ARGS_MISMATCH = it is not what was shown
error_THREAD_MISMATCH = it belongs to another conversation

## Requests that end without an answer, by their reason

ended_MEMORY_UNAVAILABLE = I stopped: the memory service is not available. Check what has been done before you ask again.
ended_GATE_UNAVAILABLE = RiskGate is not available, so I cannot do anything right now. Please try again in a moment.
ended_STEP_LIMIT = I stopped: this took more steps than I can do at once.
ended_ACTIVE_TIME_LIMIT = I stopped: this took more time than it may. What was already done stays done; check it before you ask again.
ended_TOO_MANY_ATTEMPTS = I stopped: I was interrupted too often while I worked on this message. Check what has been done before you send it again.
ended_INTERNAL_ERROR = Something went wrong on our side, and I stopped. Check what has been done before you ask again.
ended_STATE_LOST = I cannot go on with what was waiting for your answer: it is no longer stored. Please ask again.
ended_GRAPH_CHANGED = I cannot finish what I had begun: I have been updated and work in another way now. Check what has been done, then ask again.
ended_CANCELLED = Cancelled, as you asked. What was already done stays done.
ended_INTERRUPTED = I stopped: another message in this conversation asked to go first. What was already done stays done.

## Reminders

reminder_on_time = Reminder: { $text }
reminder_late = Reminder (due { $due }, { $zone } time; I could not tell you earlier): { $text }
reminder_missed = Reminder (due { $passed } times since { $due }, { $zone } time; I could not tell you earlier): { $text }
repeats_DAILY = { $count ->
    [1] every day
   *[other] every { $count } days
 }
repeats_WEEKLY = { $count ->
    [1] every week
   *[other] every { $count } weeks
 }
repeats_MONTHLY = { $count ->
    [1] every month
   *[other] every { $count } months
 }
repeats_YEARLY = { $count ->
    [1] every year
   *[other] every { $count } years
 }
weekday = { $day ->
    [0] Monday
    [1] Tuesday
    [2] Wednesday
    [3] Thursday
    [4] Friday
    [5] Saturday
   *[6] Sunday
 }

## Tools: what each does, then a colon and an example; above its result, and when it found nothing

tool_read_output = read a range of a stored output: read output <pointer> from 5000 to 6000
    .label = Output { $pointer }:
tool_rehydrate_output = bring a stored output back whole: bring back output <pointer>
    .label = Output { $pointer }, whole:
tool_read_attachment = read a file or place you sent: read the attachment <pointer>
    .label = The attachment says:
tool_search_output = search a stored output: search for error in output <pointer>
    .label = In output { $pointer }:
tool_create_reminder = remind you of something later: remind me to pay the rent tomorrow at 9 am
    .label = Reminder created.
tool_submit_form = submit a form that you have filled in
    .label = Submitted.
tool_list_reminders = list your reminders: what reminders do I have?
    .label = Your reminders:
tool_cancel_reminder = cancel a reminder: cancel the reminder to water the plants
    .label = Reminder cancelled: { $reminder }
tool_http_get = read a web page: read https://example.org/prices
    .label = { $url } says:
tool_list_dir = list a folder: list the files in docs
    .label = In the folder:
tool_read_file = read a file: read notes.txt
    .label = Contents of “{ $path }”:
tool_write_file = write a file, or append whole lines to it: write "hello" to notes.txt
    .label = Saved to “{ $path }”.
tool_undo_write = undo what I did last: undo the last change to notes.txt
    .label = Change undone.
tool_file_info = tell whether a file exists, its size and its last change: does notes.txt exist?
    .label = About that file:
tool_send_file = send you a file: send me report.pdf
    .label = I am sending you “{ $path }”.
tool_send_email = send an e-mail: send an email to ana@example.org with subject “Hi” saying “I arrive at 9”
    .label = E-mail sent to { $to }.
tool_recall = say what I remember: what do you remember about tea?
    .label = What I remember:
tool_search_files = search the files: search for budget in the files in docs
    .label = I found “{ $pattern }” here:
    .nothing = I did not find “{ $pattern }”.
tool_forget = forget something you told me: forget that I live in Lima
    .label = I have forgotten: { $memory }
tool_remember = remember something about you: remember that I prefer tea
    .label = I will remember: { $text }
tool_echo = repeat a text: echo hello
    .label = { "" }

nothing_shown = (There is nothing.)
more_shown = … (There is more.)
file_missing = “{ $path }” does not exist.
file_found = { $path } ({ $size } B), last change: { $changed } UTC
undone_removed = I removed “{ $path }”, because that change had created it.
undone_restored = “{ $path }” is as it was before.
mcp_result = Result of { $name }, from an external server:

## Ways of working (graphs)

graph_secured = Plans, proposes one call at a time and passes every effect through RiskGate
graph_react = Reasons and acts step by step: with a model, or by fixed rules without; every effect passes RiskGate
graph_form = Fills in a form in conversation and submits it with the person's permission
form_asked = May I send “{ $title }”? Answer yes or no.
form_asked_to = May I send “{ $title }” to { $where }? Answer yes or no.
form_asked_other = Another person has to approve before I send “{ $title }”; I'll go on when they answer. Say “cancel” to withdraw it.
form_asked_other_to = Another person has to approve before I send “{ $title }” to { $where }; I'll go on when they answer. Say “cancel” to withdraw it.
form_submitted = Sent: { $title }.
form_in_doubt = I do not know whether “{ $title }” was sent, so I will not send it again. (For whoever runs the service: phylactery runs unknown.)
form_not_sent = I have not sent “{ $title }”; your answers are still here for you to correct, send or cancel.
form_changed = The form has changed since last time, so I will ask you again about: { $fields }.
form_changed_none = The form has changed since last time; your answers are still good.

## Handing a conversation to a person

handoff_asked = I have asked a person of our team to join. They will write to you here; meanwhile I am still here for you.
handoff_nobody_in_form = No person is on duty here, so I cannot put you through to anybody. We can go on with the form.
handoff_nobody = No person is on duty here, so I cannot put you through to anybody. Tell me what you need and I will try to help.
handoff_timeout = I am sorry: nobody of our team could join you this time. Ask again if you still need a person.
human_said = [{ $name }, a person of our team] { $text }
human_somebody = Somebody
human_summary = [The conversation with { $name }, a person of our team, has ended. Their summary: { $text }]
human_left = [The conversation with { $name }, a person of our team, has ended.]

## What others wrote

others_words = That was written by somebody else, so I do nothing of it on my own. Tell me in your own words what you would like me to do.
others_beside = What you passed on was written by somebody else: I did nothing of that.
passed_on = [passed on, written by somebody else] { $text }

## A share of the day that is used up

share_turns = You have written to me a lot today, so I will answer again tomorrow. You can still answer my questions, stop what is under way, or ask for a person of our team.
share_answers = You have written to me a lot today, so I will go on with this tomorrow. You can still answer yes or no, stop it, or ask for a person of our team.
share_forms = You have begun as many forms today as I can take; you can begin the next one tomorrow. One that is open goes on.
share_escalations = You have asked for a person several times today, and our team knows. I cannot call them again until tomorrow.

## What ran without a question, and what was taken back

listed = { $before } and { $last }
also_done = I also { $what }. “undo” takes { $count ->
    [1] it
   *[other] them
 } back.
also_done_only = I also { $what }.
also_in_doubt = I also tried this, and I do not know whether it worked: { $what }.
done_write_file = wrote to “{ $name }”
done_write_file_unnamed = wrote to a file
done_create_reminder = set the reminder “{ $name }”
done_create_reminder_unnamed = set a reminder
done_cancel_reminder = cancelled the reminder “{ $name }”
done_cancel_reminder_unnamed = cancelled reminders
done_remember = kept in mind what you said
done_something = used a tool that can be undone
done_tool = did this: { $tool }
back_write_file = “{ $name }” is as it was before.
back_write_file_removed = I removed “{ $name }”, because I had created it.
back_write_file_unnamed = The file is as it was before.
back_create_reminder = I cancelled the reminder “{ $name }”.
back_create_reminder_unnamed = I cancelled the reminder.
back_cancel_reminder = The reminder “{ $name }” is set again.
back_cancel_reminder_unnamed = The reminders are set again.
back_cancel_reminder_missed = I did not set “{ $name }” again: its time has passed.
back_remember = I no longer remember it.
back_something = One more thing is as it was before.
undo_which = Last, I { $what }, so I do not know what to take back. “undo” takes back all of that; “cancel the reminder …” or “undo the last change to notes.txt” only one thing.
undo_none = I did nothing last that I could take back like that. “cancel the reminder …” drops a reminder, and “undo the last change to notes.txt” restores a file.
undo_except = I took nothing back: I cannot leave out a part of what I did. “undo” takes back all of it, and “undo the last change to notes.txt” only one file.
stays_as_it_is = I did not take this back: { $what } – { $why }.
ask_about_changed = What should I do with the file?
