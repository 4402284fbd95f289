"""Make the weights that word alignment starts from, from the English-French pairs of the package.

    python -m benchmarks.alignment.weights [--out src/maxmargin/tasks/alignment/data/weights.json]

Trained on all 260 pairs with their own text as the bitext, without features of word pairs, and averaged with the same
weights for exchanged sides. They stay close to weights that say what the pairs cannot show, as they have too few
numbers: identical numbers and rare names are links, wherever they stand. Everything they depend on is in the package.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from maxmargin.tasks.alignment import AlignerModel, AlignerSettings, load_corpus, train_aligner
from maxmargin.tasks.alignment import start as weights
from maxmargin.tasks.alignment.start import TRAVELING, VERSION, StartWeights

KNOWN = {
    "identical: same letters, digits": 2.0,
    "identical: same digits only": 1.0,
    "identical: same letters, both rare": 1.0,
}
SETTINGS = {"C": 0.1, "false_negative": 1.5, "rounds": 2, "tol": 1e-4}


def made(**changes: float) -> tuple[AlignerModel, StartWeights]:
    """The model, and its weights as they are shipped."""
    corpus = load_corpus()
    settings = AlignerSettings(
        features=TRAVELING, frequent_pairs=0, folds=0, start=StartWeights(KNOWN), n_jobs=-1, **(SETTINGS | changes)
    )
    model = train_aligner(list(corpus), corpus.references, settings)
    return model, StartWeights.of(model.feature_names, model.weights).symmetric()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(weights.__file__).parent / "data" / weights.FILE)
    out = parser.parse_args().out
    model, found = made()
    shipped = {
        "version": VERSION,
        "made_by": "benchmarks/alignment/weights.py",
        "settings": SETTINGS,
        "weights": {name: float(f"{value:.6g}") for name, value in found.weights.items()},
    }
    out.write_text(json.dumps(shipped, indent=1) + "\n", encoding="utf-8")
    facts = {"weights": len(found.weights), "relative_gap": model.metadata["relative_gap"], "bytes": out.stat().st_size}
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
