"""Imports are lazy: predictions and short commands load no heavy packages."""

from __future__ import annotations

import json
import pickle
import pydoc
import subprocess
import sys

import pytest
import typer

import maxmargin as mm
from maxmargin import cli

HEAVY = ("clarabel", "datasets", "highspy", "matplotlib", "nltk", "pandas", "polars", "rich", "sklearn", "spacy")


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running the code."""
    report = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_every_public_name_exists():
    assert sorted(mm.__all__) == mm.__all__
    assert set(mm.__all__) <= set(dir(mm))
    space: dict[str, object] = {}
    exec("from maxmargin import *", space)
    for name in mm.__all__:
        assert getattr(mm, name) is space[name]
    for name in dir(mm):
        getattr(mm, name)
    with pytest.raises(AttributeError, match="ChainSwm"):
        _ = mm.ChainSwm
    with pytest.raises(ImportError, match="ChainSwm"):
        exec("from maxmargin import ChainSwm")


def test_type_checkers_see_wrong_settings(tmp_path):
    """Signatures reach the user's file: mypy refuses a C that is not a number, and nothing that is right."""
    mypy = pytest.importorskip("mypy.api", reason="mypy is not installed")
    right = "import maxmargin as mm\n\nmodel = mm.ChainSVM(C=0.1, order=2, solver=mm.Mira())\nmodel.fit([], [])\n"
    calls = "mm.ChainSVM(C='x')", "mm.TreeSVM(width='x')", "mm.CutSVM(c=1.0)", "mm.GraphSVM(tol='')"
    wrong = "\n".join(["import maxmargin as mm", "", *calls])
    files = [tmp_path / "right.py", tmp_path / "wrong.py"]
    for file, text in zip(files, (right, wrong), strict=True):
        file.write_text(text)
    found = mypy.run(["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", *map(str, files)])[0]
    assert "right.py" not in found
    assert [line for line in range(1, 7) if f"wrong.py:{line}: error" in found] == [3, 4, 5, 6]


FIRST_USES = (
    "import maxmargin as mm; mm.ChainSVM(C=1.0)",
    "import maxmargin as mm; mm.solvers.Exact()",
    "import maxmargin as mm; mm.tasks.alignment.WordAligner()",
    "import maxmargin as mm; mm.tasks.tagging",
    "import maxmargin as mm; mm.structures.Chain",
    "import maxmargin as mm; mm.testing.check_structure",
    "import maxmargin.estimators.labelings.chain",
    "from maxmargin import _kernels, testing",
    "from maxmargin import *; Stop()",
    "from maxmargin.tasks import *; alignment.evaluate",
    "import maxmargin.optimization.run",
)
APART = f"""
import os, sys, traceback
import numpy, scipy.optimize, sklearn.base, sklearn.utils.validation, typer
assert not any(name.startswith("maxmargin") for name in sys.modules)
for code in {FIRST_USES}:
    child = os.fork()
    if child == 0:
        try:
            exec(code, {{}})
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(code)
"""
"""Each in a process that has loaded nothing of the package; other packages are loaded once."""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_first_uses():
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", APART], capture_output=True, text=True, check=True)
    assert answer.stdout == "", answer.stderr


def test_pickles_and_help():
    estimator = pickle.loads(pickle.dumps(mm.ChainSVM(C=3.0)))
    assert estimator.C == 3.0
    assert pickle.loads(pickle.dumps(mm.Stop)) is mm.Stop
    text = pydoc.render_doc(mm, renderer=pydoc.plaintext)
    assert "class ChainSVM" in text
    assert "regularization_path(" in text


def test_the_package_alone_is_light():
    assert not loaded("import maxmargin").intersection({*HEAVY, "numpy", "scipy", "typer"})


@pytest.mark.parametrize(
    "modules",
    [
        "structures.chains.chain, maxmargin.features, maxmargin.encoders, maxmargin.models.base, maxmargin.model_file",
        "tasks.common.files.text, maxmargin.tasks.tagging, maxmargin.tasks.common.tokens.table",
        "tasks.tagging.metrics.scores",
        "tasks.tagging.metrics.tables",
        "solvers, maxmargin.problem",
    ],
)
def test_prediction_is_light(modules):
    found = loaded(f"import maxmargin.{modules}")
    assert not found.intersection({*HEAVY, "typer", "scipy.linalg", "scipy.special", "scipy.optimize"})


def test_aligners_predict_without_the_solvers_of_scipy():
    assert "scipy.optimize" not in loaded("import maxmargin.tasks.alignment.cli, maxmargin.tasks.alignment.model")


def test_a_chain_predicts_without_heavy_packages(tmp_path):
    model = mm.ChainSVM().fit([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]]], [["a", "b"], ["b"]])
    model.save(tmp_path / "model")
    code = f"import maxmargin as mm; mm.load({str(tmp_path / 'model')!r}).predict([[[1.0, 0.0]]])"
    assert not loaded(code).intersection(HEAVY)


def test_short_commands_import_no_task():
    code = "from maxmargin.cli import app\ntry:\n    app(['{}'])\nexcept SystemExit:\n    pass"
    for verb in ("version", "--help"):
        found = loaded(code.format(verb))
        assert not found.intersection({"numpy", "sklearn", "maxmargin.tasks", "maxmargin.models.base"})


def test_commands_know_of_their_tasks():
    from maxmargin.tasks.alignment.cli import app

    group = typer.main.get_command(cli.app).commands["align"]
    own = typer.main.get_command(app)
    assert (group.help, group.no_args_is_help) == (own.help, own.no_args_is_help)
    assert list(group.commands) == list(own.commands)


def test_training_that_does_not_converge_loads_no_scikit_learn(tmp_path):
    """Loading it, for its warning alone, would count as training."""
    (tmp_path / "tokens").write_text("the DT\ndog NN\n\na DT\ncat NN\n")
    words = [
        "tag",
        "train",
        str(tmp_path / "tokens"),
        "--out",
        str(tmp_path / "model"),
        "--max-iter",
        "1",
        "--tol",
        "0",
    ]
    code = f"from maxmargin.cli import app\ntry:\n    app({words})\nexcept SystemExit:\n    pass"
    found = loaded(code)
    assert "maxmargin.optimization.loop" in found
    assert "sklearn" not in found


@pytest.mark.parametrize("module", ["tables", "given"])
def test_integrations_import_no_other_library(module):
    """Tables are known by what they can do; the modules for one library import that one alone."""
    others = {"datasets", "nltk", "pandas", "polars", "pyarrow", "sklearn", "spacy"}
    assert not loaded(f"import maxmargin.integrations.{module}").intersection(others)


def test_pipelines_of_spacy_load_models_when_they_need_them():
    """spaCy imports the components whenever a pipeline is made."""
    pytest.importorskip("spacy", reason="spaCy is not installed")
    found = loaded("import maxmargin.integrations.spacy.tagger, maxmargin.integrations.spacy.parser")
    assert not found.intersection({"maxmargin.models.base", "maxmargin._kernels", "sklearn"})
