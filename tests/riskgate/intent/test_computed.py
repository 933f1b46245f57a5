"""Task computations run once, and no call waits for another task's computation in a thread."""

from __future__ import annotations

from threading import Event, Thread

from phylactery_riskgate.domain.intent.computed import computed
from phylactery_riskgate.domain.intent.index import Result, TaskIndex
from phylactery_riskgate.domain.intent.words import Words

WAIT = 20
WORDS = (Words, Result, TaskIndex)


class Shown:
    """Something with an attribute that takes as long as it is told to."""

    def __init__(self, *, slow: bool) -> None:
        self.slow, self.begun, self.go_on, self.times = slow, Event(), Event(), 0

    @computed
    def size(self) -> int:
        """How often it was computed."""
        self.times += 1
        self.begun.set()
        assert not self.slow or self.go_on.wait(WAIT)
        return self.times


def test_a_value_is_computed_when_it_is_asked_for_and_once():
    one, other = Shown(slow=False), Shown(slow=False)
    assert "size" not in vars(one)
    assert [one.size, one.size, other.size] == [1, 1, 1]
    assert (one.times, other.times) == (1, 1)
    assert Shown.size.__doc__ == "How often it was computed."


def test_a_small_task_answers_while_a_thread_computes_the_same_of_a_large_one():
    large, small, told = Shown(slow=True), Shown(slow=False), []
    inside = Thread(target=lambda: large.size, daemon=True)
    beside = Thread(target=lambda: told.append(small.size), daemon=True)
    inside.start()
    assert large.begun.wait(WAIT)
    beside.start()
    beside.join(WAIT / 2)
    assert (told, inside.is_alive()) == ([1], True)
    large.go_on.set()
    inside.join(WAIT)
    assert large.size == 1


def test_nothing_of_a_task_is_computed_under_a_lock_that_all_tasks_share():
    kinds = {type(one).__name__ for of in WORDS for one in vars(of).values() if hasattr(one, "__set_name__")}
    assert kinds - {"property"} == {"computed"}
