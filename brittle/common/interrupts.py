"""SIGINT and SIGTERM end a command within two seconds, with one line and without traces, whatever it is doing.

A signal raises `Interrupted` in the main thread, and the work cleans up behind itself. Where it cannot, because native
code does not come back or somebody swallowed the exception, a thread ends the process after `GRACE`. All of this is the
command line's: without `install` signals mean what they mean to Python.
"""

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from brittle.common.errors import printable

SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
GRACE = 1.0  # seconds for the work to end by itself
LONGEST_HOLD = 30.0  # seconds for what must not be cut in two
CLEAR_LINE_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"


class Interrupted(BaseException):
    """Not a KeyboardInterrupt, which libraries catch. `kept` says what the work leaves behind."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.kept = number, ""


class _InterruptState:
    started = False  # before, signals end the process at once: nothing has been written, and imports break in odd ways
    ending = False
    depth = 0  # of `held` in the main thread
    pending: int | None = None
    announced = False


_state = _InterruptState()
_hold = threading.RLock()
_last_words: list[Callable[[], Any]] = []
_keeps: list[Callable[[], str]] = []


def install() -> None:
    """Take over the signals of this process."""
    listener, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    with block_signals(*SIGNALS):  # the main thread is to receive them
        threading.Thread(target=_end_after_grace, args=(listener,), daemon=True).start()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as of nohup, or in the background
            signal.signal(number, _handle)
    signal.set_wakeup_fd(wakeup.detach(), warn_on_full_buffer=False)
    sys.unraisablehook = _unraisable


def start() -> None:
    """Everything is imported: from now on signals raise `Interrupted`."""
    _state.started = True


def finish() -> None:
    """The work is done: signals change nothing any more."""
    _state.ending = True
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def announce(end: Interrupted) -> int:
    """Say it in one line; the exit code."""
    _say(end.number, end.kept)
    return 128 + end.number


def leave(code: int) -> NoReturn:
    """End the process without taking PyTorch apart, which takes long, and without waiting for anybody's threads."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


@contextmanager
def block_signals(*numbers: signal.Signals) -> Iterator[None]:
    """Processes and threads that begin here never receive these signals; this one receives them afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def hold_signals() -> Iterator[None]:
    """What happens here is not cut in two: a signal takes effect at its end."""
    main = threading.current_thread() is threading.main_thread()
    _state.depth += main
    try:
        with _hold:
            yield
    finally:
        _state.depth -= main
        if main and _state.depth == 0 and _state.pending is not None:
            _raise(_state.pending)


@contextmanager
def last_words(words: Callable[[], Any]) -> Iterator[None]:
    """What is still to be done should the process be ended here from outside, without unwinding."""
    _last_words.append(words)
    try:
        yield
    finally:
        _last_words.remove(words)


@contextmanager
def keeping(text: Callable[[], str]) -> Iterator[None]:
    """What the line of an interruption says of this work: what is kept, and how to go on."""
    _keeps.append(text)
    try:
        yield
    except Interrupted as end:
        end.kept = end.kept or text()
        raise
    finally:
        _keeps.remove(text)


def _handle(number: int, frame: object) -> None:
    if _state.ending:
        return
    if not _state.started:
        _say(number, "")
        os._exit(128 + number)
    if _state.depth:
        _state.pending = number
        return
    _raise(number)


def _raise(number: int) -> None:
    _state.ending = True
    raise Interrupted(number)


def _end_after_grace(listener: socket.socket) -> None:
    """Python hands signals to the main thread only between its instructions; this thread learns of them at once."""
    number = next(byte for byte in iter(lambda: listener.recv(1)[0], None) if byte in SIGNALS)
    time.sleep(GRACE)
    _hold.acquire(timeout=LONGEST_HOLD)
    for words in reversed(_last_words):
        with suppress(Exception):  # the process ends here whatever happens
            words()
    _say(number, _keeps[-1]() if _keeps else "")
    os._exit(128 + number)


def _say(number: int, kept: str) -> None:
    """Straight to the terminal: nobody knows what state the streams and a progress bar are in."""
    if _state.announced:
        return
    _state.announced = True
    line = printable(f"brittle: {SIGNALS[signal.Signals(number)]}" + (f"; {kept}" if kept else "") + "\n")
    with suppress(OSError):
        os.write(2, (CLEAR_LINE_SHOW_CURSOR if os.isatty(2) else b"") + line.encode(errors="replace"))


def _unraisable(unraisable: Any) -> None:
    """An interruption inside a finaliser or a callback is lost there; the thread above ends the process."""
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)
