"""Whatever a process is doing, a signal ends it soon, with one line and nothing left behind."""

import signal
from textwrap import dedent, indent

import pytest

from tests.processes import Session, needs_proc

pytestmark = needs_proc
BEGIN = """
import ctypes, sys, time
from brittle.common import interrupts
from brittle.common.files import replacing, write_json

def begun():
    print("begun", flush=True)

interrupts.install()
interrupts.start()
try:
    with interrupts.keeping(lambda: "something is kept"):
{}
    interrupts.finish()
    code = 0
except interrupts.Interrupted as end:
    code = interrupts.announce(end)
interrupts.leave(code)
"""
WORK = {
    "python": "begun(); time.sleep(600)",
    "native code that does not come back": """
        mutex = ctypes.create_string_buffer(128)
        begun()
        for _ in range(2):
            ctypes.CDLL(None).pthread_mutex_lock(mutex)  # the second one waits for ever
    """,
    "code that swallows everything": """
        begun()
        while True:
            try:
                time.sleep(600)
            except BaseException:
                pass
    """,
    "a finaliser": """
        class Slow:
            def __del__(self):
                begun()
                time.sleep(600)
        Slow()
        time.sleep(600)
    """,
    "an end that hangs": """
        import threading
        threading.Thread(target=time.sleep, args=(600,)).start()
        begun()
        time.sleep(600)
    """,
}


def script(work):
    return BEGIN.format(indent(dedent(work).strip("\n"), " " * 8))


def ended(work, number, folder):
    with Session("-c", script(work), str(folder)) as session:
        assert session.process.stdout.readline() == b"begun\n"
        return session.ended_by(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_it_ends_with_one_line(work, number, tmp_path):
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert ended(work, number, tmp_path) == (128 + number, f"brittle: {word}; something is kept\n")


@pytest.mark.parametrize("name", ["python", "native code that does not come back"])
def test_a_file_in_the_making_is_removed(name, tmp_path):
    begin = "with replacing(sys.argv[1] + '/a') as stream:\n    stream.write(b'half')\n"
    work = begin + indent(dedent(WORK[name]).strip("\n"), "    ")
    assert ended(work, signal.SIGINT, tmp_path)[0] == 130
    assert list(tmp_path.iterdir()) == []


def test_what_must_not_be_cut_in_two_is_finished_first(tmp_path):
    work = """
        with interrupts.hold_signals():
            begun()
            time.sleep(2 * interrupts.GRACE)
            write_json(sys.argv[1] + "/whole.json", {})
        write_json(sys.argv[1] + "/never.json", {})
    """
    assert ended(work, signal.SIGINT, tmp_path)[0] == 130
    assert [path.name for path in tmp_path.iterdir()] == ["whole.json"]


def test_a_process_that_ignores_ctrl_c_goes_on_to_do_so(tmp_path):
    work = "begun(); time.sleep(0.5); write_json(sys.argv[1] + '/whole.json', {})"
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    with Session("-c", ignore + script(work), str(tmp_path)) as session:
        assert session.process.stdout.readline() == b"begun\n"
        assert session.ended_by(signal.SIGINT) == (0, "")
    assert (tmp_path / "whole.json").exists()
