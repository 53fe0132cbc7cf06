"""What a signal does to the work it comes into."""

from __future__ import annotations

import os
import signal

import pytest

from dragoman.system.signals import SignalCatcher


def send(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def test_a_signal_is_noted_and_the_work_goes_on() -> None:
    with SignalCatcher() as signals:
        send(signal.SIGINT)
        send()
        assert signals.caught == [signal.SIGINT, signal.SIGTERM]


def test_a_second_one_of_a_kind_is_obeyed() -> None:
    with SignalCatcher(), pytest.raises(KeyboardInterrupt):  # noqa: PT012
        send()
        send()


def test_work_that_can_be_done_again_is_left_at_once() -> None:
    done = []
    with SignalCatcher() as signals:
        with signals.interruptible():
            done.append("begun")
            send()
            done.append("ended")
        send(signal.SIGINT)  # outside of the block it is noted and no more
        assert signals.caught == [signal.SIGTERM, signal.SIGINT]
    assert done == ["begun"]


def test_other_errors_are_not_swallowed() -> None:
    with (
        SignalCatcher() as signals,
        pytest.raises(ValueError, match="mine"),
        signals.interruptible(),
    ):
        raise ValueError("mine")


def test_the_handlers_before_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with SignalCatcher():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
