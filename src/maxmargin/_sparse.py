"""``scipy.sparse`` under the name ``sp``, loaded when it is first used.

It takes 20 MB and a fifth of a second, and much that imports it never makes a sparse matrix: a tagger's training and
prediction hold their rows as plain arrays.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import scipy.sparse as sp
else:

    class _Sparse:
        """The module as it is asked for."""

        def __getattr__(self, name: str) -> Any:
            from scipy import sparse

            value = getattr(sparse, name)
            setattr(self, name, value)  # found without this function from now on
            return value

        @staticmethod
        def issparse(value: Any) -> bool:
            """Nothing is a sparse matrix before somebody has loaded the module."""
            found = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
            return found is not None and bool(found(value))

    sp = _Sparse()

__all__ = ["sp"]
