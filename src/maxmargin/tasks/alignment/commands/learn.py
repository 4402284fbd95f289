"""Verbs around models: ``train``, ``bootstrap`` and ``predict``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin._terminal import fail, report
from maxmargin.tasks.alignment.aligner import WordAligner, load_aligner
from maxmargin.tasks.alignment.commands.options import (
    GoldFormat,
    TargetOption,
    optional_bitext,
    write,
)
from maxmargin.tasks.alignment.files import Bitext, Format, open_links, read_bitext
from maxmargin.tasks.alignment.links import Prediction
from maxmargin.tasks.alignment.sentences import SentencePair
from maxmargin.tasks.alignment.symmetrize import Method
from maxmargin.tasks.common.commands import errors_as_lines, once, writable

BitextSource = Annotated[
    str | None,
    typer.Option("--bitext-source", help="Source sentences without links, or lines 'source ||| target'."),
]
BitextTarget = Annotated[str | None, typer.Option("--bitext-target", help="Their target sentences.")]
Extra = Annotated[
    list[str] | None,
    typer.Option("--extra", metavar="NAME=FILE", help="Links of another aligner as a feature; may be repeated."),
]
Jobs = Annotated[int, typer.Option("--jobs", help="Threads; -1 for all cores.")]
Fertility = Annotated[int, typer.Option("--fertility", min=1, max=10, help="How many links a word may have.")]
Tol = Annotated[float, typer.Option("--tol", min=0.0, help="Relative duality gap of training.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Reuse = Annotated[
    Path | None,
    typer.Option("--reuse", metavar="MODEL", help="Take the translation models of this model, learn none."),
]
Confidence = Annotated[bool, typer.Option("--confidence", help="Write how sure the model is of each link.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", min=0.0, max=1.0, help="Write the links of at least this confidence."),
]
Symmetrized = Annotated[
    Method | None,
    typer.Option(
        "--method",
        help="Write the links of the hidden Markov models of words, made one by this method: a baseline.",
        show_default="the learned matching",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Report as one JSON object.")]


def _files(extras: Sequence[str] | None) -> list[str]:
    return [one.partition("=")[2] for one in extras or ()]


def _extras(given: Sequence[str] | None, bitext: Bitext, option: str = "--extra") -> dict[str, list[Prediction]]:
    found: dict[str, list[Prediction]] = {}
    for one in given or ():
        name, _, path = one.partition("=")
        if not name or not path:
            fail(f"{option} {one}: write NAME=FILE")
        if name in found:
            fail(f"{option} {one}: the name {name} is given twice")
        found[name] = open_links(path).predictions(bitext=bitext)
    return found


def _pairs(bitext: Bitext, extras: dict[str, list[Prediction]] | None = None) -> list[SentencePair]:
    return [
        SentencePair(source, target, {name: links[number] for name, links in (extras or {}).items()})
        for number, (source, target) in enumerate(zip(bitext.source, bitext.target, strict=True))
    ]


def _saved(aligner: WordAligner, out: Path, began: float, as_json: bool, pairs: int) -> None:
    aligner.save(out)
    metadata = {
        "model": str(out),
        "megabytes": out.stat().st_size / 1e6,
        "sentence pairs of the translation models": aligner.models_.n_pairs,
        "annotated sentence pairs": pairs,
        **{key: value for key, value in aligner.metadata_.items() if value is not None},
        "seconds": time.perf_counter() - began,
    }
    report(metadata, as_json=as_json)


def train(
    source: Annotated[str, typer.Option("--source", help="Annotated source sentences, or 'source ||| target'.")],
    gold: Annotated[str, typer.Option("--gold", help="Their links: NAACL, Pharaoh or JSON.")],
    out: Annotated[Path, typer.Option("--out", help="The model file to write.")],
    target: TargetOption = None,
    bitext_source: BitextSource = None,
    bitext_target: BitextTarget = None,
    dev_source: Annotated[str | None, typer.Option("--dev-source", help="Annotated pairs to choose by.")] = None,
    dev_target: Annotated[str | None, typer.Option("--dev-target", help="Their target sentences.")] = None,
    dev_gold: Annotated[str | None, typer.Option("--dev-gold", help="Their links.")] = None,
    fertility: Fertility = 2,
    C: Annotated[
        list[float] | None,
        typer.Option("--C", help="Regularization; several to choose from.", show_default="0.03 0.1 0.3"),
    ] = None,
    false_negative: Annotated[
        list[float] | None,
        typer.Option("--false-negative", help="Cost of a missed link; several to choose from.", show_default="1 2 3"),
    ] = None,
    extra: Extra = None,
    dev_extra: Annotated[
        list[str] | None, typer.Option("--dev-extra", metavar="NAME=FILE", help="The same for the dev pairs.")
    ] = None,
    reuse: Reuse = None,
    gold_form: GoldFormat = None,
    tol: Tol = 1e-3,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Learn from annotated sentence pairs, and from a bitext without annotations, as much of it as there is."""
    began = time.perf_counter()
    writable(out)
    with errors_as_lines():
        bitexts = source, target, bitext_source, bitext_target, dev_source, dev_target
        once([*bitexts, gold, dev_gold, *_files(extra), *_files(dev_extra)])
        bitext = read_bitext(source, target)
        references = open_links(gold, format=gold_form).references(bitext=bitext)
        unlabeled = optional_bitext(bitext_source, bitext_target, "--bitext-")
        held = optional_bitext(dev_source, dev_target, "--dev-")
        if (held is None) != (dev_gold is None):
            fail("--dev-source and --dev-gold belong together; give both, or neither")
        if held is None and dev_extra:
            fail("--dev-extra needs --dev-source and --dev-gold; give them, or leave it out")
        if reuse is not None and unlabeled is not None:
            fail("--reuse takes translation models that are there, --bitext-source learns some; give one of them")
        dev = None
        if held is not None and dev_gold is not None:
            dev_references = open_links(dev_gold, format=gold_form).references(bitext=held)
            dev = _pairs(held, _extras(dev_extra, held, "--dev-extra")), dev_references
        pairs = _pairs(bitext, _extras(extra, bitext))
    with errors_as_lines():
        chosen = ("C", C), ("false_negative", false_negative)
        settings: dict[str, Any] = {name: tuple(value) for name, value in chosen if value}
        models = None if reuse is None else load_aligner(reuse).models_
        aligner = WordAligner(
            fertility=fertility, tol=tol, random_state=seed, n_jobs=jobs, models=models, verbose=True, **settings
        )
        aligner.fit(pairs, references, bitext=[] if unlabeled is None else _pairs(unlabeled), dev=dev)
        _saved(aligner, out, began, as_json, len(pairs) + (0 if dev is None else len(dev[0])))


def bootstrap(
    bitext_source: Annotated[str, typer.Option("--bitext-source", help="Source sentences, or 'source ||| target'.")],
    bitext_target: BitextTarget = None,
    out: Annotated[Path | None, typer.Option("--out", help="The model file to write.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="Sentences to align at once, in place of a model file; else the bitext's own."),
    ] = None,
    target: TargetOption = None,
    pairs: Annotated[int, typer.Option("--pairs", min=1, help="How many pairs links are learned from.")] = 1000,
    fertility: Fertility = 2,
    reuse: Reuse = None,
    method: Symmetrized = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="Format of the links.", show_default="pharaoh")
    ] = None,
    confidence: Confidence = False,
    threshold: Threshold = None,
    tol: Tol = 1e-3,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Learn from a bitext alone. With --out a model is written, without it links, as by fast_align."""
    began = time.perf_counter()
    if out is not None:
        writable(out)
        if source is not None:
            fail("--out writes a model, --source asks for links; give one of them, and use align predict")
        of_links = ("--method", method), ("--format", form), ("--confidence", confidence), ("--threshold", threshold)
        ignored = [option for option, value in of_links if value is not None and value is not False]
        if ignored:
            fail(f"--out writes a model, {ignored[0]} is about links; leave one of them out, and use align predict")
    elif as_json:
        fail("--json reports on a model, and links are written without --out; give --out, or --format json for links")
    with errors_as_lines():
        once([bitext_source, bitext_target, source, target])
        bitext = read_bitext(bitext_source, bitext_target)
        asked = optional_bitext(source, target)
    with errors_as_lines():
        models = None if reuse is None else load_aligner(reuse).models_
        aligner = WordAligner(fertility=fertility, tol=tol, random_state=seed, n_jobs=jobs, models=models, verbose=True)
        learned = _pairs(bitext)
        aligner.bootstrap([*learned, *(_pairs(asked) if asked is not None else ())], n_pairs=pairs)
        if out is not None:
            _saved(aligner, out, began, as_json, 0)
            return
        _write(
            aligner, learned if asked is None else _pairs(asked), method, form or Format.pharaoh, confidence, threshold
        )


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by align train or align bootstrap.")],
    source: Annotated[str, typer.Option("--source", help="Source sentences, or lines 'source ||| target'.")],
    target: TargetOption = None,
    form: Annotated[Format, typer.Option("--format", help="Format of the links.")] = Format.pharaoh,
    confidence: Confidence = False,
    threshold: Threshold = None,
    method: Symmetrized = None,
    adapt: Annotated[
        bool,
        typer.Option(help="Let the translation models learn from this text before it is aligned, or take them as is."),
    ] = True,
    extra: Extra = None,
    jobs: Jobs = -1,
) -> None:
    """Align sentence pairs: a line of links per pair (NAACL: a line per link) on standard output."""
    with errors_as_lines():
        once([source, target, *_files(extra)])
        aligner = load_aligner(model, n_jobs=jobs, verbose=True)
        bitext = read_bitext(source, target)
        pairs = _pairs(bitext, _extras(extra, bitext))
    with errors_as_lines():
        _write(aligner, pairs, method, form, confidence, threshold, adapt=adapt)


def _write(
    aligner: WordAligner,
    pairs: list[SentencePair],
    method: Method | None,
    form: Format,
    confidence: bool,
    threshold: float | None,
    *,
    adapt: bool = False,
) -> None:
    if method is not None:
        if confidence or threshold is not None:
            fail(f"--method {method.value} has no confidences; leave --confidence and --threshold out")
        write(aligner.align_hmm(pairs, method=method.value, adapt=adapt), form)
    elif confidence or threshold is not None:
        found = aligner.align(pairs, threshold=threshold, adapt=adapt)
        write(found if confidence else [one.links for one in found], form)
    else:
        write(aligner.predict(pairs, adapt=adapt), form)
