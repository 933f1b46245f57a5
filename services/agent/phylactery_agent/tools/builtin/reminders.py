"""The reminder tools create_reminder, list_reminders and cancel_reminder."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from phylactery_agent.ports import DoneEffect, Reminder, ReminderRefusedError, Reminders, WantedReminder
from phylactery_agent.timeparse.phrases import WhenError, resolve
from phylactery_agent.timeparse.recurrence import RuleError, parse_rule, zone
from phylactery_agent.tools.contract import Invocation, Restored, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import CancelReminderArguments, CreateReminderArguments, ListRemindersArguments
from phylactery_agent.tools.specs.reminders import is_every_reminder

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def create_reminder(invocation: Invocation) -> str:
    """Create a reminder, once per effect; return it.

    Raises:
        ToolFailedError: TIME_NOT_UNDERSTOOD, TIME_PAST, TIME_HALF_UNSAID, DAY_NOT_IN_ALL_MONTHS, REPEAT_INVALID,
            TIME_ZONE_UNKNOWN, TOO_MANY_REMINDERS, or REMINDERS_UNAVAILABLE without a reminder store.
    """
    args = arguments_of(invocation, CreateReminderArguments)
    reminders = _keeper(invocation)
    name = args.time_zone or reminders.time_zone
    try:
        where = zone(name)
    except RuleError as error:
        raise ToolFailedError("TIME_ZONE_UNKNOWN", str(error)) from error
    try:
        rule = parse_rule(args.repeat) if args.repeat else None
    except RuleError as error:
        raise ToolFailedError("REPEAT_INVALID", str(error)) from error
    try:
        when = resolve(args.when, where=where, now_us=await reminders.asked_us(), rule=rule)
    except WhenError as error:
        raise ToolFailedError(error.code, str(error)) from error
    wanted = WantedReminder(args.text, when.due_us, str(when.rule) if when.rule else "", when.zone or name)
    try:
        kept = await reminders.create(wanted, key=invocation.effect_key)
    except ReminderRefusedError as error:
        raise ToolFailedError(error.reason, error.message) from error
    return json.dumps(_view(kept), ensure_ascii=False)


async def uncreate_reminder(invocation: Invocation, created: DoneEffect) -> Restored:
    """Cancel the reminder that an effect created.

    Raises:
        ToolFailedError: REMINDER_NOT_FOUND, REMINDER_RANG, REMINDER_CANCELLED, or REMINDERS_UNAVAILABLE.
    """
    try:
        gone = await _keeper(invocation).uncreate(created.effect_key, key=invocation.effect_key)
    except ReminderRefusedError as error:
        raise ToolFailedError(error.reason, error.message) from error
    return Restored(gone.text, removed=True, check=gone.reminder_id)


async def uncancel_reminders(invocation: Invocation, cancelled: DoneEffect) -> Restored:
    """Set again the reminders that an effect cancelled, as far as their time has not passed.

    Raises:
        ToolFailedError: REMINDER_NOT_FOUND, REMINDER_RANG if the time of all of them has passed, TOO_MANY_REMINDERS, or
            REMINDERS_UNAVAILABLE.
    """
    try:
        again, passed = await _keeper(invocation).uncancel(cancelled.effect_key, key=invocation.effect_key)
    except ReminderRefusedError as error:
        raise ToolFailedError(error.reason, error.message) from error
    if not again:
        raise ToolFailedError("REMINDER_RANG" if passed else "REMINDER_NOT_FOUND", "no reminder can be set again")
    first, *more = again
    missed = tuple(one.text for one in passed)
    return Restored(first.text, more=tuple(one.text for one in more), missed=missed, check=first.reminder_id)


async def is_as_before(invocation: Invocation, _effect: DoneEffect, restored: Restored) -> bool:
    """Return True if a reminder is cancelled or active again, as it was before."""
    state = await _keeper(invocation).stands(restored.check)
    return state == "cancelled" if restored.removed else state in {"active", "done"}


async def list_reminders(invocation: Invocation) -> str:
    """Return the person's active reminders, the next one first.

    Raises:
        ToolFailedError: REMINDERS_UNAVAILABLE without a reminder store.
    """
    args = arguments_of(invocation, ListRemindersArguments)
    found = await _keeper(invocation).list(limit=args.limit + 1)
    answer = {"reminders": [_view(one) for one in found[: args.limit]], "more": len(found) > args.limit}
    return json.dumps(answer, ensure_ascii=False)


async def cancel_reminder(invocation: Invocation) -> str:
    """Cancel one reminder, or all of them; return what was cancelled. Idempotent per effect.

    Raises:
        ToolFailedError: REMINDER_NOT_FOUND, REMINDER_AMBIGUOUS, or REMINDERS_UNAVAILABLE without a reminder store.
    """
    args = arguments_of(invocation, CancelReminderArguments)
    if is_every_reminder(args.reminder):
        cancelled_all = await _keeper(invocation).cancel_all(key=invocation.effect_key)
        if not cancelled_all:
            raise ToolFailedError("REMINDER_NOT_FOUND", "there is no active reminder")
        return json.dumps({"reminders": [_view(one) for one in cancelled_all]}, ensure_ascii=False)
    try:
        cancelled = await _keeper(invocation).cancel(args.reminder, key=invocation.effect_key)
    except ReminderRefusedError as error:
        raise ToolFailedError(error.reason, error.message) from error
    return json.dumps(_view(cancelled), ensure_ascii=False)


def _keeper(invocation: Invocation) -> Reminders:
    if invocation.reminders is None:
        raise ToolFailedError("REMINDERS_UNAVAILABLE", "this agent stores no reminders")
    return invocation.reminders


def _view(reminder: Reminder) -> dict[str, str]:
    """Return a reminder in the tools' output form, its time with the offset of its zone."""
    due = (_EPOCH + timedelta(microseconds=reminder.due_us)).astimezone(zone(reminder.time_zone))
    return {
        "id": reminder.reminder_id,
        "text": reminder.text,
        "due": due.isoformat(timespec="minutes"),
        "repeat": reminder.repeat,
        "time_zone": reminder.time_zone,
    }
