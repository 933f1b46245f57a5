# What RiskGate says to people, in English: the reasons of its decisions, and what `riskgate approvals` shows. A reason
# never contains an argument's value. Every language has the same messages with the same values: see
# docs/guides/add-a-language.md.

## Reasons, by their code

reason_INVALID_JSON = The arguments are not valid JSON.
reason_NOT_AN_OBJECT = The arguments must be one JSON object.
reason_DUPLICATE_KEY = An object repeats a key.
reason_TOO_DEEP = The arguments are nested more than { $limit } levels deep.
reason_TOO_LARGE = The arguments are larger than { $limit } bytes.
reason_NUMBER_OUT_OF_RANGE = A number is outside the range that every JSON reader can hold exactly.
reason_NUMBER_NOT_EXACT = A number has more digits than would be kept.
reason_INVALID_UNICODE = A text holds a lone surrogate or a null character.
reason_RESERVED_KEY = An object uses a reserved key.
reason_INTEGRITY_MISMATCH = The arguments do not match the checksum the caller made of them.
reason_UNKNOWN_TOOL = The catalog does not know this tool.
reason_NOT_FOR_GUESTS = As a guest here you can have reminders, what I remember for you, forms and a person of our team, but not this.
reason_FORM_ONLY = This is only done at the end of a form, when you have seen what you filled in.
reason_SCHEMA_MISMATCH = The caller has another schema of this tool than the catalog.
reason_VALUE_NOT_REPRESENTABLE = A policy looks at this value, which cannot be held exactly.
reason_AMOUNT_NOT_COUNTABLE = A budget counts this amount, but it is missing, negative, not exact or too large to add.
reason_RECIPIENTS_NOT_COUNTABLE = A budget counts recipients, and this call has more than { $limit }.
reason_USAGE_UNKNOWN = A budget counts this tool, but what it has counted so far was not read.
reason_CALL_NOT_KEPT = Not allowed: the arguments were erased and the tool has changed. Propose it with another tool_call_id.
reason_ASK_USED_UP = Not allowed: this request has already been carried out. Ask the person again.
reason_PERMIT_RETRACTED = Not allowed: the person took this back.
reason_VALUE_MASKED = It holds a mask where a secret was hidden from the model; the secret itself would be lost.
reason_READ_IN_PART = Not all of what this replaces or copies was read; the rest would be lost.
reason_TASK_ENDED = No longer allowed: what was asked for is over. Ask again in a new task.
reason_DECISION_TOO_OLD = No longer allowed: this was decided too long ago. Propose it again with another tool_call_id.
reason_DECISION_REVOKED = Not allowed: an operator has revoked this decision.
reason_RECORD_ALTERED = What is stored about this decision does not match the audit log. Tell whoever runs RiskGate.
reason_FROZEN = An operator has frozen all calls for now.
reason_FROZEN_TENANT = An operator has frozen all calls of this organisation for now.
reason_FROZEN_USER = An operator has frozen all calls of this user for now.
reason_FROZEN_ACTOR = An operator has frozen everything this agent or gateway proposes for now.
reason_FROZEN_TOOL = An operator has frozen this tool for now.
reason_POLICY_ERROR = The policies could not be evaluated, so the call is blocked.
reason_SUBJECT_NOT_A_USER = Decisions are about users; subjects of other types may do nothing.
reason_POLICY_NO_PERMIT = No policy allows this call.
reason_POLICY_FORBID = A policy does not allow this: { $title }
reason_POLICY_PERMIT = A policy allows this: { $title }
reason_LOW_STAKES = Done without asking, because it is yours alone and can be undone: { $title }
reason_APPROVAL_REQUIRED = This needs an approval ({ $approval_class }): { $title }
reason_APPROVAL_UNANSWERABLE = Nobody can approve it here: class { $approval_class } needs several people, and there is only one.

## What an argument violates, by the keyword of its schema: it follows the argument's path

violation_required = The argument { $limit } is missing.
violation_type = Must be of type { $limit }.
violation_additionalProperties = The schema has no such argument.
violation_minimum = Must be at least { $limit }.
violation_maximum = Must be at most { $limit }.
violation_exclusiveMinimum = Must be greater than { $limit }.
violation_exclusiveMaximum = Must be less than { $limit }.
violation_minLength = Must have at least { $limit } characters.
violation_maxLength = Must have at most { $limit } characters.
violation_minItems = Must have at least { $limit } elements.
violation_maxItems = Must have at most { $limit } elements.
violation_pattern = Does not have the form the schema requires.
violation_format = Is not a valid { $limit }.
violation_enum = Is not one of the values the schema allows.
violation_const = Is not the value the schema requires.
violation_uniqueItems = Has repeated elements.
violation_multipleOf = Must be a multiple of { $limit }.
violation_null = May not be null; leave the argument out.
violation_any = Does not fit the tool's schema.

## Budgets

budget_calls = The budget { $budget } has no calls left.
budget_amount = The budget { $budget } does not cover this amount.
budget_recipients = The budget { $budget } allows no more recipients.

## Why a call does not count as requested, by the kind of doubt

doubt_unasked = You did not ask for this.
doubt_negation = Part of what you said forbids something, and I am not sure what.
doubt_exclusion = You left something out, and I am not sure that this is what remains.
doubt_condition = You set a condition, and I cannot tell whether it holds.
doubt_question = It sounded like a question, not like a request.
doubt_hypothetical = It sounded like an idea, not like a request.
doubt_statement = It sounded as if you told something, not as if you asked for it.
doubt_report = You reported what somebody else said or wants.
doubt_permission = You spoke about what is allowed, not about what to do.
doubt_past = It sounded as if it had already been done.
doubt_future = It sounded as if it was for later.
doubt_irony = It sounded like a joke.
doubt_retraction = You took something back.
doubt_announce = You spoke about the words, not about doing it.
doubt_idiom = It may be just a figure of speech.
doubt_trailing = You said something after the request that I do not understand.
doubt_leftover = Part of what you asked for is missing here.
doubt_value = Something in this is not what you said.
doubt_time = I am not sure about the time.
doubt_mode = I am not sure whether to add to what is there or to replace it.
doubt_content = What it says is not quite what you said.
doubt_pasted = Part of your message may be somebody else's text.
doubt_disguise = Your message contains characters that look like others.
doubt_mark = Your message contains a mark that may strike out or deny it.
doubt_framed = Something else you said may mean that it should not be done, or not yet.
doubt_length = Your message is too long for me to be sure.
doubt_used-up = You asked for this once, and it has been done.
doubt_any = I am not sure that you asked for this.

## Notices: what people are told outside of a conversation

notices_approval_waiting = { $requester } needs an approval to use { $tool }.
notices_approval_reminder = Still waiting: { $requester } needs an approval to use { $tool }.
notices_approval_decided_APPROVED = { $decided_by } approved that { $requester } uses { $tool }.
notices_approval_decided_REJECTED = { $decided_by } rejected that { $requester } uses { $tool }.
notices_approval_decided_CANCELLED = No longer waiting: { $requester } does not need { $tool } any more.
notices_approval_expired = Nobody answered in time: { $requester } may not use { $tool }.
notices_approval_expired_unused = Approved, but not used in time: { $tool } for { $requester } did not run.
notices_calls_frozen_all = An operator has frozen all calls.
notices_calls_frozen_tenant = An operator has frozen all calls of { $tenant }.
notices_calls_frozen_user = An operator has frozen all calls of the user { $name }.
notices_calls_frozen_actor = An operator has frozen everything that { $name } proposes.
notices_calls_frozen_tool = An operator has frozen the tool { $name }.
notices_calls_unfrozen_all = All calls are possible again: their freeze was lifted.
notices_calls_unfrozen_tenant = Calls of { $tenant } are possible again: their freeze was lifted.
notices_calls_unfrozen_user = Calls of the user { $name } are possible again: their freeze was lifted.
notices_calls_unfrozen_actor = { $name } may propose calls again: its freeze was lifted.
notices_calls_unfrozen_tool = The tool { $name } can be used again: its freeze was lifted.
notices_limit_reached = { $requester } reached the limit { $limit }: { $tool } was not allowed.
notices_limit_reached_TOO_MANY_PENDING = { $requester } has too many questions waiting: { $tool } was not asked about.
notices_limit_reached_TOO_MANY_ASKED = { $requester } was asked too much within an hour: { $tool } was not asked about.
notices_effect_in_doubt = Nobody knows whether { $tool } took effect for { $requester }. Look where it acts, and report what you find.
notices_bundle_activated = Policy revision { $revision } decides from now on.
notices_bundle_activated_rollback = Policy revision { $revision } decides again: an earlier one was restored.
notices_test = This is a test. Notices arrive here.
notices_how = To answer: riskgate approvals show { $id }
notices_field_tool = Tool
notices_field_requester = For
notices_field_tenant = Organisation
notices_field_amount = Amount
notices_field_stakes = At stake
notices_field_risk = Risk
notices_field_class = Who answers
notices_field_decided_by = Answered by
notices_field_expires = Until
notices_field_approval_id = Approval
notices_field_execution_id = Execution
notices_field_activated_by = Activated by
notices_field_bundle_hash = Bundle

## Why a person is asked, and what a yes does, on a card

why_always = I ask before I do this.
why_quoted = “{ $words }”: { $sentence }
why_unclear = I am not sure what to make of “{ $words }”.
why_whom = You did not say to whom; it would go to { $value }.
why_unsaid = Your request does not say { $value }.
why_listed = You did not say { $value } in these words.
why_spelled = You wrote { $value } in another way.
why_pointed = I have { $value } from what you told me to look at, not from you.
why_dictated = Part of it may be somebody else's words.
why_address = It is an address that you did not write.
why_reader = I may have understood you wrong.
why_form = I send what you filled in only when you have seen it.
why_form_other = Somebody else has to agree to this form.
why_two = Two people have to agree to this.
why_card = There is a card number in it.
why_secret = There is a password or a key in it.
why_spends = This spends { $amount }.
why_spends_unknown = This spends something, and I cannot tell how much.
why_arrives = It would arrive at { $whom }.
why_public = Anybody could see it.
why_destroys = This deletes something.
why_guards = This changes what protects something: a lock, a password, a permission or a rule.
why_executed = Other programs run or obey a file of this name.
why_final = It cannot be taken back.

## riskgate approvals

approvals_approval = approval
approvals_state = state
approvals_tool = tool
approvals_risk = risk
approvals_stakes = stakes of this call
approvals_class = class
approvals_requester = requested by
approvals_thread = conversation
approvals_run = run
approvals_expires = expires in
approvals_hash = arguments hash
approvals_decided_by = answered by
approvals_wanted_by = required by
approvals_what = what
approvals_argument = argument
approvals_value = value
approvals_from = where it is from
approvals_origin_USER = the user's words, or made in this task
approvals_origin_REGISTRY = a registry
approvals_origin_POINTED = text the user pointed to
approvals_origin_FOREIGN = other text, or nowhere
approvals_before = approved before
approvals_votes = { $votes } of { $needed }
approvals_over = expired
approvals_yours = ● is waiting for your answer
approvals_nothing_waits = Nothing is waiting.
approvals_none = None.
approvals_more = There are more; list them with --limit.
approvals_no_arguments = The arguments are no longer stored.
approvals_left_out = { $count ->
    [one] { $count } more argument is not shown here: do not approve what you have not seen.
   *[other] { $count } more arguments are not shown here: do not approve what you have not seen.
 }
approvals_cut = A value is not shown whole: riskgate approvals show { $id } --full shows all of it.
approvals_cut_in_full = A value is longer than what can be shown: do not approve what you have not seen.
approvals_compared = Compared with { $id }, the last approved call of this tool for { $requester }.
approvals_not_compared = No call of this tool has been approved for { $requester } before.
approvals_SAME = same
approvals_CHANGED = changed
approvals_NEW = new
approvals_REMOVED = gone
approvals_mark_CONTROL = control characters
approvals_mark_BIDI = reading direction changed
approvals_mark_INVISIBLE = invisible characters
approvals_mark_LOOK_ALIKE = look-alike letters
approvals_mark_MIXED_SCRIPT = mixed alphabets
approvals_mark_PILED_UP = stacked marks
approvals_mark_CUT = { $count } characters not shown
approvals_mark_HIDDEN = sensitive part hidden
approvals_confirm = To approve this, once, type the last { $count } characters of the hash (anything else changes nothing)
approvals_unchanged = Nothing was changed.
approvals_done = { $id }: { $state }
approvals_voted = { $id }: your yes counts, { $votes } of { $needed }; another person has to answer too
approvals_other_hash = { $id } is about other arguments than those of --args-hash; look at it again
approvals_yes_needs_hash = --yes needs --args-hash, the hash of the arguments shown to you
approvals_no_terminal = there is no terminal to ask on; to approve, use --yes and --args-hash
approvals_not_pending = { $id } is already { $state }; only a PENDING one can be answered
approvals_watching = Watching { $target }. Ctrl-C ends.
approvals_ask = [a]pprove  [r]eject  [s]kip  [q]uit
approvals_ask_reason = Why? (you may leave it empty)
approvals_lost = The connection was lost ({ $why }); trying again …
approvals_hours = { $hours } h { $minutes } min
approvals_minutes = { $minutes } min { $seconds } s
