"""Files of every format that the library reads, damaged or made to deceive: models and the inputs of all tasks.

Good small files are made in memory by the library's own writers or written here; each input is one of them with
changes. A target reads the input as a user would, and uses what it has read: a model that is accepted must predict.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.fuzz.harness import Target
from benchmarks.fuzz.mutations import Generator, mutated, resealed
from maxmargin.tasks.alignment import WordAligner
from maxmargin.tasks.alignment.io.bitext import read_bitext
from maxmargin.tasks.alignment.io.corpus import parse_corpus
from maxmargin.tasks.alignment.io.link_files import open_links
from maxmargin.tasks.common.files.text import read_text
from maxmargin.tasks.reranking import Reranker
from maxmargin.tasks.reranking.io.features import read_columns
from maxmargin.tasks.reranking.io.files import read_nbest
from maxmargin.tasks.reranking.io.inputs import read_references
from maxmargin.tasks.reranking.io.lattices import read_lattices, write_lattices
from maxmargin.tasks.reranking.io.weights import read_weights
from maxmargin.tasks.reranking.io.write import write_nbest
from maxmargin.tasks.reranking.made import made_lattices, made_lists, made_transcripts
from maxmargin.tasks.segmentation import Segmenter
from maxmargin.tasks.segmentation.drawings import drawn_pictures, drawn_scans
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.segmentation.io.images import read_image, write_image
from maxmargin.tasks.segmentation.io.masks import learn_codes, read_mask, read_seeds, write_mask
from maxmargin.tasks.segmentation.io.scans import learn_scan_codes, read_scan, write_scan
from maxmargin.tasks.tagging import SequenceTagger
from maxmargin.tasks.tagging.encoder.templates.template import Template
from maxmargin.tasks.tagging.io.files import read_tagged

_folders: list[Any] = []


@cache
def folder() -> Path:
    """A folder that is removed with the process."""
    _folders.append(tempfile.TemporaryDirectory())
    return Path(_folders[-1].name)


def _written(name: str, write: Callable[[Path], object]) -> bytes:
    path = folder() / name
    write(path)
    return path.read_bytes()


def _streamed(write: Callable[[Any], object]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


# ---- Good files


@cache
def _tagged() -> list[bytes]:
    columns = b"The DT B-NP\ncat NN I-NP\nsleeps VBZ O\n\nDogs NNS B-NP\nbark VBP O\n"
    conllu = (
        b"# text = The cat\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2-3\tcats\t_\t_\t_\t_\t_\t_\t_\t_\n"
        b"2\tcat\tcat\tNOUN\tNN\tNumber=Sing\t0\troot\t_\t_\n3\ts\ts\tPART\tPOS\t_\t2\tcase\t_\t_\n\n"
    )
    crfsuite = b"B-NP\tw=The\tpos=DT:0.5\nI-NP\tw=cat\\:s\tpos=NN:2\n\nO\tw=x:1e3\n\n"
    lines = [
        {"tokens": ["The", "cat"], "labels": ["B", "I"]},
        {"word": ["The", "cat"], "pos": ["DT", "NN"], "label": ["B", "I"]},
        {"items": [{"w=The": 1.5}, {"w=cat": 1}], "labels": ["B", "I"]},
    ]
    jsons = [
        b"\n".join(json.dumps(line).encode() for line in some) + b"\n"
        for some in (lines[:1] * 3, lines[1:2], lines[2:])
    ]
    return [columns, columns.replace(b" ", b"\t"), conllu, crfsuite, b"The/DT cat/NN sleeps/VBZ\nA/DT dog/NN\n", *jsons]


@cache
def _links() -> list[bytes]:
    document = [[[0, 0], [1, 2, "P"]], {"links": [[0, 1]], "confidence": [0.5]}, {"sure": [[0, 0]], "possible": []}]
    return [
        b"0-0 1p1 2-2\n\n0-1 1-0\n",
        b"0-0:0.93 1p1:0.5\n0-1:1e-3\n",
        b"1 1 1 S\n1 2 2 P\n3 1 2 S 0.5\n",
        b"1 1 1\n1 2 2\n3 1 2\n",
        b"0 0 1 S\n0 1 0 P\n2 3 0 S\n",
        b"# Sentence pair (1) source length 2 target length 2 alignment score : 1\nle chat\n"
        b"NULL ({ }) the ({ 1 }) cat ({ 2 })\n",
        b"\n".join(json.dumps(pair).encode() for pair in (document[0], document[0])) + b"\n",
        json.dumps([document[1], document[1]]).encode(),
        json.dumps([document[2]], indent=1).encode(),
    ]


@cache
def _texts() -> list[bytes]:
    return [
        "The cat sleeps\nDogs bark loudly ||| and\n\nété\u00a0x\n".encode(),
        b"the cat ||| le chat\na dog ||| un chien\n",
        b"the cat\tle chat\na dog\tun chien\n",
        b"# pairs\nthe cat ||| le chat ||| 0-0 1-1\na dog ||| un chien ||| 0-0 1p1\n",
        b'U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\n# comment\nU02:%t[0,0,"^[A-Z]"]\nU03:%m[0,0,"..$"]\n',
        b"w[t-1]|pos[t]\nw[t]\n",
        b"ground=0 leaf=255,128 void=7\n",
        b"ground=#000000\nleaf=#20a020 # green\nberry=#ff0000,*\n",
        b'{"lm": 0.5, "tm_0": -1.0, "len": 2}',
        b"0.5 1.5\n-1 2\n3 1e-3\n",
        b"0:0-1:0-2 1:2-2:3-3\n0:0-0:0-0\n",
    ]


@cache
def _lists() -> list[bytes]:
    some = made_transcripts(3, size=3)
    found = [_streamed(partial(write_nbest, some, format=form)) for form in ("moses", "tsv", "jsonl")]
    plain = b"".join(text.encode() + b"\n" for text in some.texts)
    return [*found, plain]


@cache
def _parquet() -> list[bytes]:
    return [_streamed(lambda out: write_nbest(made_transcripts(3, size=3), out, "parquet"))]


@cache
def _lattice_files() -> list[bytes]:
    nodes = "".join(f"I={at} t=0.1\n" for at in range(4))
    edges = "".join(f"J={at} S={at} E={at + 1} W=w{at} a=-1.5 l=2\n" for at in range(3))
    return [
        b"((('the',-0.5,1),('a',-1.2,1),),(('cat',-0.1,1),),)\n" * 3,
        f"VERSION=1.0\nUTTERANCE=u1\nlmscale=9.5\nstart=0 end=3\nN=4 L=3\n{nodes}{edges}".encode(),
        _streamed(lambda out: write_lattices(made_lattices(1), out)),
    ]


@cache
def _pictures() -> tuple[Any, Any]:
    return drawn_pictures(3, size=(12, 16))


@cache
def _images() -> list[bytes]:
    (image, *_), _ = _pictures()
    deep = (
        (image.astype(np.uint16) * 257) if image.ndim == 3 else np.stack([image.astype(np.uint16) * 257] * 3, axis=-1)
    )
    found = [_written(f"good{end}", lambda path: write_image(path, image)) for end in (".png", ".tif", ".npz", ".jpg")]
    gray = image[..., 0] if image.ndim == 3 else image
    found.append(_written("gray.png", lambda path: write_image(path, gray)))
    found.append(_streamed(lambda out: np.save(out, gray)))
    found.append(_deep_png(deep))
    return found


def _deep_png(pixels: Any) -> bytes:
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + name + content + zlib.crc32(name + content).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([16, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


CODES = parse_classes("ground=0 leaf=255", void="128").codes()
COLORS = parse_classes("ground=#000000 leaf=#20a020").codes()


@cache
def _masks() -> list[bytes]:
    _, (labels, *_) = _pictures()
    return [
        *(_written(f"mask{end}", lambda path: write_mask(path, labels, CODES)) for end in (".png", ".tif", ".npz")),
        _written("color.png", lambda path: write_mask(path, labels, COLORS)),
    ]


@cache
def _scans() -> list[bytes]:
    scans, labels = drawn_scans(1, points=30)
    found = []
    for end in (".ply", ".las", ".laz", ".npz", ".txt", ".csv"):
        try:
            found.append(_written(f"scan{end}", lambda path: write_scan(path, scans[0], labels[0])))
        except (ValueError, ImportError) as error:
            print(f"no scan of kind {end}: {error}")
    ascii_ply = (
        b"ply\nformat ascii 1.0\ncomment x\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        b"property uchar label\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
        b"0 0 0 1\n1 0 0.5 2\n0 1 1e3 1\n3 0 1 2\n"
    )
    return [*found, ascii_ply, b"x y z label\n0 0 0 1\n1 1 1 2\n2 0 1 1\n", b"0.5,1.5,2,7\n1,2,3,8\n"]


# ---- Good models


@cache
def _models() -> list[tuple[bytes, Callable[[Any], object]]]:
    """Files of models of every kind, and what each is then used for."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(3, 2)) for _ in range(4)]
    y = [["a", "b", "a"], ["b", "b", "a"], ["a", "a", "b"], ["b", "a", "a"]]
    ring = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    rings = [mm.Graph(random.normal(size=(4, 2)), ring, np.abs(random.normal(size=(4, 1)))) for _ in range(4)]
    cuts = [random.integers(0, 2, 4).tolist() for _ in rings]
    trees = [mm.Graph(one.node_features, ring[:3], one.edge_features[:3]) for one in rings]
    names = [["a" if label else "b" for label in labels] for labels in cuts]
    pairs = [random.normal(size=(2, 2, 2)) for _ in range(4)]
    links = [[(0, 0), (1, 1)], [(0, 1), (1, 0)]] * 2
    found = [
        (mm.ChainSVM(tol=0.1), X, y),
        (mm.ChainSVM(order=2, tol=0.1), X, y),
        (mm.MatchingSVM(tol=0.1), pairs, links),
        (mm.CutSVM(tol=0.1), rings, cuts),
        (mm.TreeSVM(tol=0.1), trees, names),
        (mm.GraphSVM(tol=0.1), rings, names),
        (mm.AssociativeSVM(tol=0.1), rings, names),
    ]
    curved = mm.features.Kernel("rbf", gamma=1.0)
    found += [
        (mm.ChainSVM(features=curved, tol=0.1), X, y),
        (mm.MatchingSVM(features=mm.features.Kernel("poly", degree=2), tol=0.1), pairs, links),
        (mm.GraphSVM(features=curved, tol=0.1), rings, names),
        (mm.CandidatesSVM(tol=0.1), X, [0, 1, 2, 0]),
        (mm.CandidatesSVM(features=curved, tol=0.1), X, [0, 1, 2, 0]),
        (mm.LatticeSVM(tol=0.1), *_word_lattices()),
        (mm.SegmentSVM(tol=0.1, forbidden=[(None, "b")]), X, [[(0, 1, "a"), (1, len(x), "b")] for x in X]),
    ]
    files = []
    for number, (estimator, inputs, outputs) in enumerate(found):
        data = _written(f"model{number}", estimator.fit(inputs, outputs).save)
        files.append((data, partial(_predict, inputs)))
    return files


def _word_lattices() -> tuple[list[Any], list[Any]]:
    random = np.random.default_rng(0)
    edges = np.array([[0, 1], [0, 1], [1, 2], [1, 2]])
    words = ["a", "b", None, "c"]
    return [mm.WordLattice(random.normal(size=(4, 2)), edges, words) for _ in range(3)], [[0, 2], [1, 3], [0, 3]]


def _predict(inputs: Any, model: Any) -> None:
    model.predict(inputs)
    model.describe()


@cache
def _taggers() -> list[tuple[bytes, Callable[[Any], object]]]:
    X = [["The", "cat", "sleeps"], ["Dogs", "bark"], ["The", "dogs"]]
    y = [["B", "I", "O"], ["B", "O"], ["B", "I"]]
    items = [[{"w=The": 1.0, "cap": 0.5}, {"w=cat": 1.0}], [{"w=The": 1.0}, {"w=dog": 2.0}]]
    few = [["B", "I"], ["B", "O"]]
    found = []
    for number, (options, inputs, outputs) in enumerate(
        [({}, X, y), ({"template": "U00:%x[0,0]\nB\n"}, X, y), ({}, items, few)]
    ):
        tagger = SequenceTagger(tol=0.1, **options).fit(inputs, outputs)
        found.append((_written(f"tagger{number}", tagger.save), partial(_predict, inputs)))
    return found


def _align_and_update(X: Any, model: Any) -> None:
    _predict(X, model)
    model.score_pairs(X)
    model.lexicon(top=2)
    model.updated([("a dog sleeps", "un chien dort")]).predict(X)


@cache
def _aligners() -> list[tuple[bytes, Callable[[Any], object]]]:
    X = [("the cat sleeps", "le chat dort"), ("the dog", "le chien"), ("a cat", "un chat")]
    y = [[(0, 0), (1, 1), (2, 2)], [(0, 0)], [(1, 1)]]
    found = []
    for number, options in enumerate(({"models": None, "frequent_pairs": 3}, {})):
        aligner = WordAligner(**options).fit(X, y)
        found.append((_written(f"aligner{number}", aligner.save), partial(_align_and_update, X)))
    return found


@cache
def _rerankers() -> list[tuple[bytes, Callable[[Any], object]]]:
    lists = made_lists(10, 0, size=4)
    found = []
    for number, method in enumerate(("max-margin", "perceptron")):
        model = Reranker(method, folds=0).fit(lists, lists.references)
        found.append((_written(f"reranker{number}", model.save), partial(_predict, lists)))
    return found


@cache
def _segmenters() -> list[tuple[bytes, Callable[[Any], object]]]:
    images, labels = _pictures()
    found = []
    for number, classifier in enumerate(("linear", "boosting")):
        try:
            model = Segmenter(n_regions=10, classifier=classifier, stages=1, folds=2).fit(images, labels)
        except ValueError as error:
            print(f"no segmenter with {classifier}: {error}")
            continue
        found.append((_written(f"segmenter{number}", model.save), partial(_predict, images[:1])))
    return found


# ---- Targets


def _path(name: str, data: bytes) -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


_OTHERS: tuple[Callable[[], list[bytes]], ...] = (_tagged, _links, _texts, _lists, _lattice_files, _scans)


def _read(
    made: Callable[[], list[bytes]], read: Callable[[Generator, Path], object], name: str, random: Generator
) -> None:
    """Change one of the good files and read it."""
    good = made()
    others = _OTHERS[random.integers(len(_OTHERS))]()
    data = mutated(random, good[random.integers(len(good))], others)
    if random.random() < 0.003:
        data = bomb(random)
    read(random, _path(name, data))


def bomb(random: Generator) -> bytes:
    """A small file that expands to hundreds of megabytes, or to just as much as is allowed."""
    megabyte = (b"0-0 1-1\n", b"a b\n", b"\0", b"\n", b"x", b"[")[random.integers(6)] * (1 << 18)
    stream = io.BytesIO()
    if random.random() < 0.8:
        kinds: tuple[Callable[[], Any], ...] = (
            partial(gzip.GzipFile, fileobj=stream, mode="wb", compresslevel=1),
            partial(bz2.BZ2File, stream, "wb", compresslevel=1),
            partial(lzma.LZMAFile, stream, "wb", preset=0),
        )
        with kinds[random.integers(3)]() as file:
            for _ in range(int(random.choice([1, 3, 100]))):
                file.write(megabyte)
    else:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (20_000, 2_000)})
        with (
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open("image.npy", "w") as member,
        ):
            member.write(header.getvalue())
            for _ in range(320):
                member.write(bytes(1_000_000))
    return stream.getvalue()


def _one_of(random: Generator, *ways: Callable[[Path], object]) -> Callable[[Path], object]:
    return ways[random.integers(len(ways))]


def _read_tagged(random: Generator, path: Path) -> None:
    text = read_tagged(
        path,
        format=(None, None, "columns", "conllu", "crfsuite", "json", "tagged")[random.integers(6)],
        columns=(None, None, "word,label", "word,pos,label")[random.integers(4)],
        labeled=(None, None, True, False)[random.integers(4)],
        join=bool(random.random() < 0.2),
    )
    if text.labeled:
        text.label_codes()


def _read_links(random: Generator, path: Path) -> None:
    file = open_links(
        path,
        format=(None, None, None, "pharaoh", "naacl", "talp", "json", "a3")[random.integers(8)],
        first=(None, None, 0, 1)[random.integers(4)],
    )
    _one_of(random, lambda _: file.references(), lambda _: file.predictions())(path)


def _read_text(random: Generator, path: Path) -> None:
    _one_of(
        random,
        read_bitext,
        read_references,
        read_columns,
        read_weights,
        lambda path: parse_corpus(read_text(path).decode("utf-8")),
        lambda path: parse_classes(file=path).codes(),
        lambda path: parse_classes("ground,leaf", file=path).codes(),
        lambda path: Template.parse(read_text(path).decode("utf-8"), ("word", "pos"), path),
        lambda path: read_nbest(_path("beside", _lists()[3]), list_size=3, features=[path]),
        lambda path: read_nbest(_path("beside", _lists()[3]), list_size=3, segments=path),
        lambda path: read_nbest(_path("beside", _lists()[3]), references=path),
    )(path)


def _read_lists(random: Generator, path: Path) -> None:
    read_nbest(
        path,
        format=(None, None, "moses", "tsv", "jsonl", "plain")[random.integers(6)],
        list_size=(None, 3)[random.integers(2)],
        encoding=("utf-8", "utf-8", "latin-1")[random.integers(3)],
    )


def _read_lattices(random: Generator, path: Path) -> None:
    read_lattices(path, format=(None, None, "plf", "slf", "json")[random.integers(5)])


def _read_mask(random: Generator, path: Path) -> None:
    _one_of(
        random,
        lambda path: read_mask(path, CODES),
        lambda path: read_mask(path, COLORS),
        lambda path: read_seeds(path, CODES),
        lambda path: learn_codes([path]),
    )(path)


def _read_scan(random: Generator, path: Path) -> None:
    scan = read_scan(path, (None, None, "label", 4)[random.integers(4)])
    if scan.labels is not None:
        learn_scan_codes([scan])


def _load(made: Callable[[], list[tuple[bytes, Callable[[Any], object]]]], name: str, random: Generator) -> None:
    """Load a model with changes inside, and use it if it is accepted."""
    good = made()
    data, use = good[random.integers(len(good))]
    use(mm.load(_path(name, resealed(random, data)), n_jobs=1))


def targets() -> list[Target]:
    """One target for each kind of file."""
    readers: dict[str, tuple[Callable[[], list[bytes]], Callable[[Generator, Path], object]]] = {
        "tagged": (_tagged, _read_tagged),
        "links": (_links, _read_links),
        "texts": (_texts, _read_text),
        "lists": (_lists, _read_lists),
        "parquet": (_parquet, _read_lists),
        "lattices": (_lattice_files, _read_lattices),
        "images": (_images, lambda _, path: read_image(path)),
        "masks": (_masks, _read_mask),
        "scans": (_scans, _read_scan),
    }
    models = {
        "models": _models,
        "taggers": _taggers,
        "aligners": _aligners,
        "rerankers": _rerankers,
        "segmenters": _segmenters,
    }
    return [
        # A packed file may expand to 4 MB of empty lines before it is refused, each of which is a pair of lists.
        *(Target(name, partial(_read, made, read, name), megabytes=1000.0) for name, (made, read) in readers.items()),
        *(Target(name, partial(_load, made, name)) for name, made in models.items()),
    ]
