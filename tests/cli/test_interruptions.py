"""SIGINT and SIGTERM in every phase of the commands: one line, the exit code of the signal, no half-written file."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import runner

from benchmarks.robustness import command_inputs
from maxmargin import _files, _interrupts, model_file
from maxmargin.cli import app
from maxmargin.models.base import load
from maxmargin.optimization.checkpoints.files import PREVIOUS
from maxmargin.tasks.common.cli.checkpoints import Checkpoints

TAG = ("--columns", "word,pos,label,_", "--label", "label", "--jobs", "1")
LONG = (*TAG, "--C", "0.1", "--folds", "0", "--tol", "1e-9", "--max-iter", "40")
ALIGN = ("--C", "0.1", "--false-negative", "2", "--tol", "1e-2", "--jobs", "1")
SEGMENT = ("--classes", "ground,leaf", "--classifier", "linear", "--stages", "1", "--folds", "2", "--regions", "40")
RERANK = ("--folds", "0", "--C", "1", "--jobs", "1")
ENDING = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Inputs of the commands, and a model of each task."""
    pytest.importorskip("skimage", reason="needs the images extra")
    folder = tmp_path_factory.mktemp("interrupted")
    command_inputs.write_inputs(folder, sentences=40, pictures=3, lists=20)
    for name, line in TRAINING.items():
        words = [word.format(files=folder) for word in line]
        answer = runner.invoke(app, [*words, "--out", str(folder / name)])
        assert answer.exit_code == 0, answer.output
    return folder


BITEXT = ("--source", "{files}/en", "--target", "{files}/fr")
TRAINING = {
    "tagger": ("tag", "train", "{files}/tokens", *TAG),
    "aligner": (
        "align",
        "train",
        "--source",
        "{files}/en",
        "--target",
        "{files}/fr",
        "--gold",
        "{files}/links",
        *ALIGN,
    ),
    "segmenter": ("segment", "train", "--images", "{files}/images", "--masks", "{files}/masks", *SEGMENT),
    "reranker": ("rerank", "train", "--nbest", "{files}/nbest", "--references", "{files}/ref0", *RERANK),
}
SOLVING = "maxmargin.optimization.loop:certify"
SAVING = "maxmargin.model_file:os.fsync"
SAVED = "maxmargin._files:os.replace"
NOTHING = "nothing was written"
NO_SAVE = "nothing was written, and no checkpoint was saved yet"
PART = "the output is incomplete"
PREDICTING = {
    "tag": ("tag", "predict", "{files}/tagger", "{files}/dev"),
    "align": ("align", "predict", "{files}/aligner", *BITEXT),
    "segment": ("segment", "predict", "{files}/segmenter", "{files}/images", "--jobs", "1"),
    "rerank": ("rerank", "predict", "{files}/reranker", "--nbest", "{files}/nbest"),
}
LINKS = (*BITEXT, "--links", "{files}/links")
LABELED = ("--images", "{files}/images", "--masks", "{files}/masks")

TAGGER, ALIGNER, SEGMENTER, RERANKER = ((*line, "--out", "out") for line in TRAINING.values())
LONGER = ("tag", "train", "{files}/tokens", *LONG, "--out", "out")
CALIBRATED = (*TAGGER, "--dev", "{files}/dev")
CHOOSING = "C was being chosen by folds, so that there are no weights yet"
RESUMES = "out.checkpoint is kept: the same command with --resume resumes from it"
BEST = "out was written with the best weights so far"
BEST_AND_KEPT = f"{BEST}; {RESUMES}"
REPORT = ("segment", "report", "{files}/segmenter", *LABELED, "--html", "out")
EVALUATE = ("tag", "evaluate", "{files}/tagger", "{files}/dev")
EXPORT = ("rerank", "export", "{files}/reranker", "--json", "--out", "out")

# The command, the function of a module in whose (n-th) call the signal comes, and what is left then.
PHASES: list[tuple[tuple[str, ...], str, str]] = [
    (LONGER, "maxmargin.tasks.tagging.reading:ReadOptions.read", NO_SAVE),
    (LONGER, "maxmargin.tasks.tagging.encoder.tagging:TaggingEncoder.encoded", NO_SAVE),
    (LONGER, SOLVING, BEST_AND_KEPT),
    ((*LONGER, "--folds", "3", "--C", "auto"), SOLVING, f"{CHOOSING}; {NO_SAVE}"),
    (
        (*LONGER, "--folds", "3", "--C", "auto"),
        "maxmargin.tasks.tagging.folds:Folds.score 2",
        f"{CHOOSING}; the best C",
    ),
    (TAGGER, SAVED, BEST_AND_KEPT),
    (TAGGER, SAVED + " 2", "out was written"),
    (TAGGER, "maxmargin.tasks.tagging.cli.train:report", "out was written"),
    (CALIBRATED, "maxmargin.tasks.tagging.dev:DevSentences.temperature", BEST_AND_KEPT),
    (
        (*CALIBRATED, "--C", "0.1,1"),
        "maxmargin.optimization.loop:Run.of 3",
        BEST_AND_KEPT.replace("checkpoint", "checkpoint-0"),
    ),
    (ALIGNER, "maxmargin.tasks.alignment.cli.train:read_annotated", NOTHING),
    (ALIGNER, "maxmargin.tasks.alignment.training:train_aligner", NOTHING),
    (ALIGNER, SOLVING, BEST),
    (ALIGNER, SOLVING + " 3", BEST),
    (ALIGNER, SAVING, NOTHING),
    (ALIGNER, "maxmargin.tasks.alignment.cli.saving:report", "out was written"),
    (SEGMENTER, "maxmargin.tasks.segmentation.files.train:learn_codes", NOTHING),
    (SEGMENTER, SOLVING, f"no model was written; {RESUMES}"),
    (SEGMENTER, SOLVING + " 3", BEST_AND_KEPT),
    (SEGMENTER, SAVING, NOTHING),
    (RERANKER, "maxmargin.tasks.reranking.files:read_nbest", NOTHING),
    (RERANKER, SOLVING, f"no model was written; {RESUMES}"),
    (RERANKER, SOLVING + " 3", BEST_AND_KEPT),
    (RERANKER, SAVING, BEST_AND_KEPT),
    ((*PREDICTING["tag"], "--out", "out"), "maxmargin.model_file:read", NOTHING),
    ((*PREDICTING["tag"], "--out", "out"), "maxmargin.tasks.tagging.model:TaggerModel.best", NOTHING),
    ((*PREDICTING["tag"], "--out", "out"), SAVED, "out was written"),
    (PREDICTING["tag"], "maxmargin.tasks.tagging.model:TaggerModel.best", PART),
    (PREDICTING["align"], "maxmargin.tasks.alignment.model:AlignerModel.predict", PART),
    ((*PREDICTING["rerank"], "--out", "out"), "maxmargin.tasks.reranking.files:write_texts", NOTHING),
    ((*PREDICTING["segment"], "--out", "out"), "maxmargin.tasks.segmentation.files.predict:write_mask", NOTHING),
    ((*PREDICTING["segment"], "--out", "out"), SAVED, "out/0.png was written"),
    (REPORT, "maxmargin.tasks.segmentation.files.report:page", NOTHING),
    (("align", "show", *LINKS, "--html", "out"), "maxmargin._files:os.replace", ""),
    (EVALUATE, "maxmargin.tasks.tagging.metrics.tables:scores_table", ""),
    (EXPORT, SAVED, "out was written"),
    (("inspect", "{files}/tagger"), "maxmargin.cli:report", ""),
]


@pytest.fixture
def handled() -> Iterator[None]:
    """Signals as in the process of a command that a terminal has started, whatever this process ignores."""
    kept = {number: signal.getsignal(number) for number in (*_interrupts._ENDING, signal.SIGALRM)}
    hook = sys.unraisablehook
    for number in _interrupts._ENDING:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _interrupts.end_on_signals()
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)
    sys.unraisablehook, _interrupts._received = hook, None


def signalled(monkeypatch: pytest.MonkeyPatch, place: str, number: int) -> None:
    """Send a signal to this process when a function is called for the n-th time, before it does anything."""
    module, path, call = re.fullmatch(r"(.*):(\S*)(?: (\d+))?", place).groups(default="1")
    owner: Any = import_module(module)
    *parts, name = path.split(".")
    for part in parts:
        owner = getattr(owner, part)
    real, calls = getattr(owner, name), []

    def wrapper(*given: Any, **settings: Any) -> Any:
        calls.append(1)
        if len(calls) == int(call):
            signal.raise_signal(number)
        return real(*given, **settings)

    monkeypatch.setattr(owner, name, wrapper)


@pytest.mark.parametrize(
    ("command", "place", "left", "number"),
    [(*phase, ENDING[at % 2]) for at, phase in enumerate(PHASES)],
    ids=[f"{' '.join(command[:2])}-{place.partition(':')[2]}" for command, place, _ in PHASES],
)
def test_a_signal_in_a_phase(command, place, left, number, files, handled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    signalled(monkeypatch, place, number)
    answer = runner.invoke(app, [word.format(files=files) for word in command])
    assert isinstance(answer.exception, SystemExit), answer.exception
    assert answer.exit_code == 128 + number, answer.output
    assert answer.stderr.splitlines()[-1].startswith(f"interrupted; {left}" if left else "interrupted")
    found = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    beside = rf"out\.checkpoint((-stages|-folds|-models-[0-9]|-[0-9]-0)({re.escape(PREVIOUS)})?|{re.escape(PREVIOUS)})"
    found = [name for name in found if not re.fullmatch(beside, name)]
    names = [name for name in re.findall(r"(\S*) (?:was written|is kept)", left) if name not in ("nothing", "model")]
    if left:
        assert sorted(found) == sorted(names)
    else:  # a command that does not say what is left may have written its file
        assert found in ([], ["out"])
    if BEST in left:
        assert load("out").metadata["status"] == "interrupted"


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_training_that_is_ended_resumes_to_the_same_model(number, files, handled, tmp_path, monkeypatch):
    """The signal comes in the middle of a step, which is completed and saved."""
    monkeypatch.chdir(tmp_path)
    command = ["tag", "train", str(files / "tokens"), *LONG]
    with monkeypatch.context() as patch:
        signalled(patch, "maxmargin.solvers.online.block_frank_wolfe:BlockFrankWolfe.step 5", number)
        answer = runner.invoke(app, [*command, "--out", "model"])
    assert answer.exit_code == 128 + number
    assert set(os.listdir()) - {f"model.checkpoint{PREVIOUS}"} == {"model", "model.checkpoint"}
    again = runner.invoke(app, [*command, "--out", "model", "--resume"])
    whole = runner.invoke(app, [*command, "--out", "whole"])
    assert (again.exit_code, whole.exit_code) == (0, 0)
    assert sorted(os.listdir()) == ["model", "whole"]
    first, second = (model_file.read(name)[1] for name in ("model", "whole"))
    assert all(np.array_equal(one, second[name]) for name, one in first.items())


def test_an_interrupt_that_is_lost_in_a_finalizer_is_raised_again(handled):
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)
            sum(range(10))

    lost = Finalized()
    del lost
    with pytest.raises(KeyboardInterrupt):
        signal.pause()
    assert _interrupts.exit_code() == 143


def test_an_ignored_signal_stays_ignored(handled):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _interrupts.end_on_signals()
    signal.raise_signal(signal.SIGHUP)
    assert _interrupts.received() is None


AS_IN_A_TERMINAL = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
"""A process inherits ignored signals, as from ``nohup`` or a job in the background of a script."""


def process(code: str, *arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """A process that first runs some code, then the command line, with the signals of a terminal."""
    code = f"{AS_IN_A_TERMINAL}\nfrom maxmargin.__main__ import main\n{code}\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, **settings
    )


@pytest.mark.parametrize("number", [*ENDING, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("place", ["import", "error", "typer", "string"])
def test_a_signal_while_modules_are_imported_or_options_read(place, number):
    """Also where the interrupt becomes an error of the import, is taken by typer, or comes in code from a string."""
    code = f"""
import builtins, os, typer.core
def interrupt():
    os.kill(os.getpid(), {int(number)})
    sum(range(10))
real = builtins.__import__
def load(name, *given, **more):
    if name == "maxmargin.cli":
        if {place == "string"}:
            exec("interrupt()", globals())
        try:
            interrupt()
        except KeyboardInterrupt:
            if {place == "error"}:
                raise ImportError("numpy could not be imported")
            raise
    return real(name, *given, **more)
if {place == "typer"}:
    typer.core.TyperGroup.make_context = lambda *given, **more: interrupt()
else:
    builtins.__import__ = load
"""
    done = process(code, "version")
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "interrupted\n")


def test_a_reader_that_has_gone_ends_a_command_silently(files):
    """As after ``| head -1``; with a buffer that is flushed at the end only."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "maxmargin", "version"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


# --- files that are written whole -----------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o640)
    with contextlib.suppress(KeyboardInterrupt), _files.recorded() as written, _files.replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert (written, path.read_text(), os.listdir(tmp_path)) == ([], "before", ["file"])
    with _files.recorded() as written, _files.replacing(path) as file:
        file.write(b"after")
        assert path.read_text() == "before"
    assert (written, path.read_text(), os.listdir(tmp_path)) == ([path], "after", ["file"])
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_a_killed_process_left_is_removed(tmp_path):
    code = """
import os, signal, sys
from maxmargin._files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model.checkpoint")], check=False)
    assert [name.endswith(".part") for name in os.listdir(tmp_path)] == [True]
    (tmp_path / ".model.other.part").touch()
    Checkpoints(tmp_path / "model").begin(resume=False)
    assert os.listdir(tmp_path) == [".model.other.part"]


def test_other_signals_wait_for_a_step_where_interrupts_are_ignored():
    """As in a command that a script runs in the background."""
    code = (
        "import os, signal\n"
        "from maxmargin import _interrupts\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "_interrupts.end_on_signals()\n"
        "try:\n"
        "    with _interrupts.defer_interrupts():\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        print('the step is complete')\n"
        "    print('not reached')\n"
        "except KeyboardInterrupt:\n"
        "    print(_interrupts.exit_code())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["the step is complete", "143"], done.stderr
