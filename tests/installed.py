"""What an installation must do: train a small model, save and load it, and run a command. Run it with ``python -P``.

It needs nothing but the package, so that wheels are tested with it where no test tools are installed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from importlib.metadata import files, version
from pathlib import Path

import numpy as np

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.tasks import _kernels as task_kernels

TOKENS = "the DT\ndog NN\n\na DT\ncat NN\n"


def main() -> None:
    """Raise an error if something does not work."""
    assert mm.__version__ == version("maxmargin")
    names = {str(name) for name in files("maxmargin") or []}
    assert any(name.endswith("licenses/LICENSE") for name in names), "no license"
    assert not any(part in ("tests", "cpp") for name in names for part in Path(name).parts), "files of the repository"
    assert importlib.util.find_spec("maxmargin").origin.endswith("__init__.py")
    assert (Path(mm.__file__).parent / "py.typed").exists(), "no py.typed"

    X = [np.eye(2)[[0, 1, 1]], np.eye(2)[[1, 0]]]
    y = [["a", "b", "b"], ["b", "a"]]
    model = mm.ChainSVM(n_jobs=-1).fit(X, y)
    pairs = mm.ProgramSVM().fit([mm.Program(np.eye(2), np.ones((1, 2)), np.ones(1))] * 2, [np.array([1, 0])] * 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.mm"
        model.save(path)
        assert [list(one) for one in mm.load(path).predict(X)] == y
        command = [sys.executable, "-m", "maxmargin"]
        (Path(folder) / "tokens.txt").write_text(TOKENS, encoding="utf-8")
        for more in (["tag", "train", "tokens.txt", "--out", "tags.mm"], ["tag", "predict", "tags.mm", "tokens.txt"]):
            done = subprocess.run([*command, *more], cwd=folder, check=True, stdout=subprocess.PIPE)
        assert b"dog" in done.stdout
    module = Path(_kernels.__file__).name, Path(task_kernels.__file__).name
    print(f"maxmargin {mm.__version__}, {module[0]}, {module[1]}: {model.solution_.status}, {pairs.solution_.status}")


if __name__ == "__main__":
    main()
