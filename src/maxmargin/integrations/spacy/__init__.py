"""spaCy: the components ``maxmargin_tagger`` and ``maxmargin_parser``, which ``nlp.add_pipe`` knows by entry points.

Needs the extra ``maxmargin[spacy]``.
"""

from maxmargin.tasks.common.packages import optional

optional("spacy", "spacy")
