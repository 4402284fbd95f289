"""Choose the extractor for given inputs: templates for tokens of text, items for attributes, rows for matrices.

For tokens of text this includes the names of their columns, and the template or preset that reads the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.datasets.columns import is_frame
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import FeatureSequence
from maxmargin.tasks.common.tokens.table import AttributeText, TokenTable
from maxmargin.tasks.tagging.encoder.columns.gazetteers import Gazetteers
from maxmargin.tasks.tagging.encoder.extraction import Extractor, first_token
from maxmargin.tasks.tagging.encoder.extractors import ItemExtractor, MatrixExtractor, TemplateExtractor
from maxmargin.tasks.tagging.encoder.presets import preset
from maxmargin.tasks.tagging.encoder.templates.template import Template
from maxmargin.tasks.tagging.io.files import column_names
from maxmargin.tasks.tagging.io.named_columns import is_numeric, refuse_frame, token_names

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder


def new_extractor(encoder: TaggingEncoder, X: Any) -> Extractor:
    """Return an extractor that has not learned, for inputs of this kind and the settings of an encoder."""
    if isinstance(X, AttributeText):
        return _without_template(encoder, "attributes of tokens", ItemExtractor())
    columns = text_columns(encoder, X)
    if columns is not None:
        gazetteers = None if encoder.gazetteers is None else Gazetteers.read(encoder.gazetteers)
        template = _template(encoder, columns, () if gazetteers is None else gazetteers.names)
        return TemplateExtractor.of(template, gazetteers, encoder.text)
    first = checks.examples(X)[0]
    if sp.issparse(first) or isinstance(first, (np.ndarray, FeatureSequence)) or is_frame(first):
        return _without_template(encoder, "matrices", MatrixExtractor())
    return _without_template(encoder, "attributes of tokens", ItemExtractor())


def text_columns(encoder: TaggingEncoder, X: Any) -> tuple[str, ...] | None:
    """Return the columns of tokens for a template; None if the inputs are not tokens of text."""
    if isinstance(X, TokenTable):
        return column_names(encoder.columns) or X.columns
    if isinstance(X, AttributeText):
        return None
    refuse_frame(X)
    sentences = checks.examples(X)
    first = sentences[0]
    if is_frame(first):
        return None if is_numeric(first) else token_names(first) or ("word",)
    if sp.issparse(first) or (isinstance(first, (np.ndarray, FeatureSequence)) and not _of_text(first)):
        return None
    token = first_token(sentences)
    if encoder.preset is None and encoder.template is None and not isinstance(token, str) and encoder.columns is None:
        return None
    if (named := token_names(token)) is not None:
        return named
    width = len(token) if isinstance(token, (list, tuple)) else 1
    names = column_names(encoder.columns) or (("word",) if width == 1 else ("word", "pos")[:width])
    return (*names, *(f"column{c}" for c in range(len(names), width)))[:width]


def _without_template(encoder: TaggingEncoder, what: str, extractor: Extractor) -> Extractor:
    if encoder.preset is not None or encoder.template is not None:
        raise ValueError(f"{what} need no template or preset; leave it out, or give tokens of text")
    for name, there in (("gazetteers", encoder.gazetteers), ("text", encoder.text)):
        if there is not None:
            raise ValueError(f"{what} cannot use {name}; leave {name} out, or give tokens of text")
    return extractor


def _template(encoder: TaggingEncoder, columns: Sequence[str], gazetteers: Sequence[str]) -> Template:
    found = _parsed_template(encoder, columns, gazetteers)
    if encoder.text is not None and "cluster" not in found.added:
        raise ValueError(
            "there is text without labels, and the template does not use it; add the lines '!cluster cluster word' "
            "and 'U:%filled[0,cluster]', or leave the text out"
        )
    if gazetteers and "gazetteer" not in found.added:
        raise ValueError(
            f"there are gazetteers ({', '.join(gazetteers)}), and the template does not use them; add the lines "
            "'!gazetteer listed word' and 'U:%filled[0,listed]', or leave the gazetteers out"
        )
    return found


def _parsed_template(encoder: TaggingEncoder, columns: Sequence[str], gazetteers: Sequence[str]) -> Template:
    clusters = encoder.text is not None
    if isinstance(encoder.template, Template):
        given = encoder.template
        plain = not gazetteers and encoder.text is None
        return given if plain else Template.parse(given.text, given.columns, "template", gazetteers, clusters)
    if encoder.preset is not None:
        _checks.instance("preset", encoder.preset, str, "the name of a preset")
    if encoder.template is not None:
        _checks.instance("template", encoder.template, str, "a Template or the text of one")
        if "\n" not in encoder.template and not encoder.template.startswith(("U", "B", "#", "!")):
            raise ValueError(
                f"template must be the text of a template, got {shown(encoder.template)}; read a file with "
                "template=Path(...).read_text()"
            )
        return Template.parse(encoder.template, columns, gazetteers=gazetteers, clusters=clusters)
    assert encoder.preset is not None  # chosen by the labels, if it was not given
    return preset(encoder.preset, columns, gazetteers, clusters)


def _of_text(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUS" and value.ndim == 1
