"""The component ``maxmargin_tagger``: labels of a sequence tagger as tags, parts of speech, entities or spans."""

# Without "from __future__ import annotations": spaCy reads the types of the factory's arguments.

from collections.abc import Iterable, Sequence
from typing import Any, Dict, Optional  # noqa: UP035 (older versions of spaCy read these alone)

from spacy.language import Language
from spacy.parts_of_speech import IDS
from spacy.pipeline.spancat import spancat_score
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Span, Token

from maxmargin.integrations.spacy.columns import TokenColumns
from maxmargin.integrations.spacy.component import ModelPipe, sentences_of

ATTRIBUTES = ("tag", "pos", "ents", "spans")
DEFAULTS: dict[str, Any] = {
    "model": None,
    "attribute": "tag",
    "columns": {},
    "overwrite": False,
    "spans_key": "sc",
    "n_jobs": None,
}
ASSIGNS = "token.tag", "token.pos", "doc.ents", "doc.spans"


def make_tagger(
    nlp: Language,
    name: str,
    model: Optional[str],  # noqa: UP045
    attribute: str,
    columns: Dict[str, str],  # noqa: UP006
    overwrite: bool,
    spans_key: str,
    n_jobs: Optional[int],  # noqa: UP045
) -> "MaxMarginTagger":
    """Return the component; the arguments are those of :class:`MaxMarginTagger`."""
    return MaxMarginTagger(name, model, attribute, columns, overwrite, spans_key, n_jobs)


Language.factory("maxmargin_tagger", default_config=DEFAULTS, assigns=ASSIGNS, func=make_tagger)


class MaxMarginTagger(ModelPipe):
    """Writes the labels of a :class:`~maxmargin.tasks.tagging.TaggerModel` to documents.

    A sequence is a sentence, if a component before it sets bounds of sentences, else the document. Tokens of white
    space are left out; their tag is ``_SP`` and their part of speech ``SPACE``, as spaCy's own taggers have them.

    Args:
        name: the name in the pipeline.
        model: the name of the model file, which is opened at the first document.
        attribute: what the labels are: ``token.tag_`` ("tag"), ``token.pos_`` ("pos"), or labels such as B-PER and
            I-PER, whose chunks become ``doc.ents`` ("ents") or ``doc.spans[spans_key]`` ("spans").
        columns: the attribute of tokens that a column of the model is read from, ``{"pos": "pos_"}``; ``"_.name"`` for
            an extension. By default ``word`` is ``text``, ``pos`` and ``xpos`` are ``tag_``, ``upos`` is ``pos_``.
        overwrite: whether predictions replace what components before have set; by default that stays.
        spans_key: the key in ``doc.spans``.
        n_jobs: threads, as scikit-learn reads it.
    """

    def __init__(
        self,
        name: str = "maxmargin_tagger",
        model: str | None = None,
        attribute: str = "tag",
        columns: dict[str, str] | None = None,
        overwrite: bool = False,
        spans_key: str = "sc",
        n_jobs: int | None = None,
    ) -> None:
        if attribute not in ATTRIBUTES:
            raise ValueError(f"{name}: attribute must be one of {', '.join(ATTRIBUTES)}, got {attribute!r}")
        self.attribute, self.overwrite, self.spans_key = attribute, overwrite, spans_key
        self.columns = TokenColumns(name, columns)
        super().__init__(name, model, n_jobs)

    @staticmethod
    def kind() -> Any:
        """See :meth:`ModelPipe.kind`."""
        from maxmargin.tasks.tagging.model import TaggerModel

        return TaggerModel

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the model; none before it is loaded, at the first document."""
        return () if self._model is None else tuple(str(label) for label in self._model.labels)

    def check(self, model: Any) -> None:
        """See :meth:`ModelPipe.check`."""
        from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks

        self.columns.check(model.columns)
        odd = [label for label in model.labels if label not in IDS]
        if self.attribute == "pos" and odd:
            raise ValueError(f"{self.name}: {odd[0]!r} is not a universal part of speech; use attribute='tag'")
        if self.attribute in ("ents", "spans") and not look_like_chunks(model.labels):
            some = ", ".join(map(str, model.labels[:5]))
            raise ValueError(
                f"{self.name}: the labels do not encode chunks, as B-PER does: {some}; use attribute='tag'"
            )

    def annotate(self, docs: Sequence[Doc]) -> None:
        """See :meth:`ModelPipe.annotate`; where labels depend on other sentences, on those of their document."""
        model = self.load()
        for block in [[doc] for doc in docs] if model.reach else [docs]:
            self._annotate(model, block)

    def _annotate(self, model: Any, docs: Sequence[Doc]) -> None:
        sentences = [tokens for doc in docs for tokens in sentences_of(doc)]
        rows = model.rows(self.columns.cells(model.columns, sentences))
        codes, names = model.best(rows), self.labels
        flat = [token for tokens in sentences for token in tokens]
        if self.attribute in ("ents", "spans"):
            self._set_spans(docs, flat, codes, rows.offsets)
            return
        written = f"{self.attribute}_"
        of_space = "_SP" if self.attribute == "tag" else "SPACE"
        pairs = [(token, names[code]) for token, code in zip(flat, codes.tolist(), strict=True)]
        pairs += [(token, of_space) for doc in docs for token in doc if token.is_space]
        for token, label in pairs:
            if self.overwrite or not getattr(token, written):
                setattr(token, written, label)

    def _set_spans(self, docs: Sequence[Doc], tokens: list[Token], codes: Any, offsets: Any) -> None:
        from maxmargin.integrations.spacy.spans import chunk_spans, joined

        found: dict[int, list[Span]] = {id(doc): [] for doc in docs}
        for span in chunk_spans(tokens, codes, offsets, self.labels):
            found[id(span.doc)].append(span)
        for doc in docs:
            spans, before = found[id(doc)], list(doc.ents)
            if self.attribute == "ents":
                doc.ents = joined(spans, before) if self.overwrite else joined(before, spans)
            else:
                doc.spans[self.spans_key] = spans if self.overwrite else [*doc.spans.get(self.spans_key, ()), *spans]

    def score(self, examples: Iterable[Any], **options: Any) -> dict[str, Any]:
        """Return the scores of spaCy for the attribute, for ``nlp.evaluate``."""
        if self.attribute == "ents":
            return dict(get_ner_prf(examples))
        if self.attribute == "spans":
            return dict(spancat_score(examples, spans_key=self.spans_key, allow_overlap=False))
        return dict(Scorer.score_token_attr(examples, self.attribute))
