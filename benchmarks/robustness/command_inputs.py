"""Small inputs of the commands of all tasks, and what two runs of a command must share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maxmargin import model_file


def write_inputs(folder: Path, *, sentences: int = 60, pictures: int = 4, lists: int = 30) -> None:
    """Write tagged text, sentence pairs with links, pictures with masks, and n-best lists with references.

    They are in ``tokens``, ``dev``, ``trees``, ``en``, ``fr``, ``links``, ``images``, ``masks``, ``nbest``, ``ref0``
    and ``ref1``. In the trees each token depends on the next one.

    Args:
        folder: where to.
        sentences: tagged sentences; as many more as a quarter of them in ``dev``.
        pictures: pictures of 40 by 48 pixels.
        lists: n-best lists.
    """
    from maxmargin.tasks import alignment, reranking, segmentation, tagging
    from maxmargin.tasks.segmentation.drawings import drawn_pictures

    train, rest = tagging.load_corpus().split()
    train.select(range(sentences)).write(folder / "tokens")
    rest.select(range(sentences // 4)).write(folder / "dev")
    tagged = (folder / "tokens").read_text(encoding="utf-8").split("\n\n")
    (folder / "trees").write_text("\n".join(map(_chained, tagged[: sentences // 4])), encoding="utf-8")
    part = alignment.load_corpus().select(range(0, 240, 8))
    for side, texts in (("en", part.source), ("fr", part.target)):
        (folder / side).write_text("".join(" ".join(words) + "\n" for words in texts), encoding="utf-8")
    with open(folder / "links", "w", encoding="utf-8") as file:
        alignment.write_links(file, part.references)
    codes = segmentation.parse_classes("ground=0 leaf=255").codes()
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for at, (image, mask) in enumerate(zip(*drawn_pictures(pictures, size=(40, 48)), strict=True)):
        segmentation.write_image(folder / "images" / f"{at}.png", image)
        segmentation.write_mask(folder / "masks" / f"{at}.png", mask, codes)
    made = reranking.made_lists(lists, seed=1, size=10)
    reranking.write_nbest(made, folder / "nbest")
    for number in (0, 1):
        references = "".join(f"{texts[number]}\n" for texts in made.references or ())
        (folder / f"ref{number}").write_text(references, encoding="utf-8")


def _chained(sentence: str) -> str:
    """Lines of tokens and tags as a tree in CoNLL-U."""
    tokens = [line.split()[:2] for line in sentence.splitlines()]
    heads = [*range(2, len(tokens) + 1), 0]
    return "".join(
        f"{at}\t{word}\t_\t{tag}\t_\t_\t{head}\t{'next' if head else 'root'}\t_\t_\n"
        for at, ((word, tag), head) in enumerate(zip(tokens, heads, strict=True), start=1)
    )


def contents(path: Path) -> tuple[Any, dict[str, bytes]]:
    """What two model files must share: the header without times, and all arrays."""
    header, arrays = model_file.read(path)
    return without_times(header), {name: one.tobytes() for name, one in arrays.items()}


def without_times(value: Any) -> Any:
    """Plain JSON without entries of seconds."""
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if "seconds" not in name}
    return [without_times(one) for one in value] if isinstance(value, list) else value
