"""Codes of classes: which values of a mask or of a column of a scan stand for which class.

A definition is a list of ``name=values``, separated by white space or commas, or one per line of a file::

    ground=1200-1206 vegetation=1300,1301,1302 void=1001,9999 rest=*
    background=#000000 horse=#ff0000 void=#ffffff

Values are integers, ranges of integers, colors, or words if the labels are words; ``*`` stands for all values that are
not named. The class ``void`` is not a class: its pixels or points have no label, neither in training nor in metrics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted, shortened
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import AnyPath, problem, read_text

Color = tuple[int, int, int]
Value = int | str | Color
Looked = tuple[IntArray, npt.NDArray[np.bool_]]

VOID = -1
"""The label of pixels and points without a class."""

_VOID_NAME = "void"
_OTHERS = "*"
_COLOR = re.compile(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})")
_RANGE = re.compile(r"([+-]?\d+)-([+-]?\d+)")
_INTEGER = re.compile(r"[+-]?\d+")
_LONGEST_NAME, _LONGEST_NUMBER = 200, 40
_MAX_RANGE = 1 << 16
_MAX_INTEGER = 1 << 62
MAX_CLASSES = 256


@dataclass(frozen=True)
class ClassCodes:
    """The classes by name, and the values that stand for them.

    Attributes:
        names: the classes, in the order of their numbers 0, 1, ...
        values: for each class the values that stand for it; the first is the one that is written.
        void: values of pixels or points without a class.
        others: the class of all other values, :data:`VOID` if they have none; None makes them errors.
        rounded: whether values are rounded to the nearest code, as JPEG changes them; for gray values only.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    void: tuple[Value, ...] = ()
    others: int | None = None
    rounded: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MAX_CLASSES:
            raise ValueError(f"{len(self.names)} classes; give between 1 and {MAX_CLASSES}")
        if len(self.values) != len(self.names):
            raise ValueError(f"{len(self.names)} classes and values for {len(self.values)}; give values for each class")
        for name in self.names:
            _check_name(name)
        if len(set(self.names)) < len(self.names):
            twice = next(name for at, name in enumerate(self.names) if name in self.names[:at])
            raise ValueError(f"class {twice!r} is named twice; give its values together")
        owner: dict[Value, str] = {}
        for name, given in [*zip(self.names, self.values, strict=True), (_VOID_NAME, self.void)]:
            if not given and name != _VOID_NAME:
                raise ValueError(f"class {name!r} has no value; give it one, as {name}=1")
            for value in given:
                if owner.setdefault(value, name) != name:
                    raise ValueError(
                        f"value {_brief(value)} stands for both {owner[value]!r} and {name!r}; give it to one of them"
                    )
        if len({type(value) for value in owner}) > 1:
            raise ValueError("integers, colors and words are mixed; give the values of all classes in one way")
        if self.others is not None and not VOID <= self.others < len(self.names):
            raise ValueError(f"others stand for class {self.others} of {len(self.names)}; give the number of a class")
        if self.rounded and not self.by_index:
            raise ValueError("only gray values can be rounded; give integers")

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.names)

    @property
    def by_color(self) -> bool:
        """Whether the values are colors."""
        return isinstance(self.values[0][0], tuple)

    @property
    def by_index(self) -> bool:
        """Whether the values are integers."""
        return isinstance(self.values[0][0], int)

    @property
    def written(self) -> tuple[Value, ...]:
        """The value that is written for each class."""
        return tuple(given[0] for given in self.values)

    def lookup(self, values: npt.NDArray[Any]) -> Looked:
        """Return the class of each value, :data:`VOID` for void ones, and which values have no class.

        Args:
            values: integers, or words, or colors as :func:`packed` makes them, of any shape.
        """
        table = [*zip(self.values, range(self.n_classes), strict=True), (self.void, VOID)]
        keys = [_key(value) for given, _ in table for value in given]
        labels = np.array([label for given, label in table for _ in given], dtype=np.int64)
        if isinstance(keys[0], str):
            return self._lookup_words(np.asarray(values), dict(zip(map(str, keys), labels.tolist(), strict=True)))
        codes = np.array(keys, dtype=np.int64)
        order = np.argsort(codes)
        codes, labels = codes[order], labels[order]
        values = np.asarray(values).astype(np.int64)
        if self.rounded:
            # Halfway between two codes the lower one is taken: of 0 and 255, values up to 127 are 0.
            at = np.searchsorted((codes[1:] + codes[:-1] + 1) / 2.0, values, side="right")
            return labels[at], np.zeros(values.shape, dtype=bool)
        at = np.minimum(np.searchsorted(codes, values), len(codes) - 1)
        unknown = codes[at] != values
        return np.where(unknown, VOID if self.others is None else self.others, labels[at]), self._unknown(unknown)

    def _lookup_words(self, values: npt.NDArray[Any], classes: Mapping[str, int]) -> Looked:
        distinct, inverse = np.unique(values.astype(str), return_inverse=True)
        known = np.array([word in classes for word in distinct.tolist()], dtype=bool)
        rest = VOID if self.others is None else self.others
        labels = np.array([classes.get(word, rest) for word in distinct.tolist()], dtype=np.int64)
        inverse = inverse.reshape(values.shape)
        return labels[inverse], self._unknown(~known[inverse])

    def _unknown(self, unknown: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        return unknown if self.others is None else np.zeros(unknown.shape, dtype=bool)

    def state(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "names": list(self.names),
            "values": [[_plain(value) for value in given] for given in self.values],
            "void": [_plain(value) for value in self.void],
            "others": self.others,
            "rounded": self.rounded,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ClassCodes:
        """Return the codes of a state; ValueError if it is not one."""
        try:
            names, values, void = state["names"], state["values"], state["void"]
            others, rounded = state["others"], state["rounded"]
            if not all(isinstance(one, list) for one in (names, values, void, *values)):
                raise TypeError("values that are not lists")
            if not all(isinstance(name, str) for name in names) or not isinstance(rounded, bool):
                raise TypeError("values of other types")
            if others is not None and (not isinstance(others, int) or isinstance(others, bool)):
                raise TypeError(f"others {others!r}")
            read = tuple(tuple(_of_plain(value) for value in given) for given in values)
            return cls(tuple(names), read, tuple(_of_plain(value) for value in void), others, rounded)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the codes of classes ({error}); train the model again") from None


def _check_name(name: str) -> None:
    if (
        not name
        or name == _VOID_NAME
        or name.split() != [name]
        or any(c in name for c in "=,;*#")
        or not name.isprintable()
        or len(name) > _LONGEST_NAME
    ):
        raise ValueError(
            f"{quoted(name)} is not a name of a class; give a word without white space, '=', ',', '*' or '#'"
        )


def gray(value: Value) -> Color:
    """Return the gray of an integer between 0 and 255."""
    if not isinstance(value, int) or not 0 <= value <= 255:
        raise ValueError(f"value {_brief(value)} is not a gray between 0 and 255; give the values of masks as #rrggbb")
    return (value, value, value)


def packed(colors: npt.NDArray[Any]) -> IntArray:
    """Return one integer for each color of an array with a last axis of length 3."""
    wide = colors.astype(np.int64)
    return (wide[..., 0] << 16) | (wide[..., 1] << 8) | wide[..., 2]


def unpacked(color: int) -> Color:
    """Return the color of an integer of :func:`packed`."""
    return (color >> 16 & 255, color >> 8 & 255, color & 255)


def shown(value: Value) -> str:
    """Return a value as it is written in definitions."""
    return "#{:02x}{:02x}{:02x}".format(*value) if isinstance(value, tuple) else str(value)


def _brief(value: Value) -> str:
    """Return a value for a message."""
    return shortened(shown(value), 40)


def _key(value: Value) -> int | str:
    return value[0] << 16 | value[1] << 8 | value[2] if isinstance(value, tuple) else value


def _plain(value: Value) -> int | str:
    return value if isinstance(value, int) else shown(value)


def _of_plain(value: object) -> Value:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MAX_INTEGER:
        return value
    if isinstance(value, str):
        return _color(value) if _COLOR.fullmatch(value) else value
    raise TypeError(f"value {value!r}")


def _color(text: str) -> Color:
    digits = text[1:]
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    return (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16))


def parse_values(text: str) -> list[Value]:
    """Return the values of one word of a definition: ``3``, ``3-7``, ``#ff0000`` or a word."""
    if "=" in text:
        raise ValueError(f"{quoted(text)} is not a value; give definitions as name=value, name=value")
    if _COLOR.fullmatch(text):
        return [_color(text)]
    if text.startswith("#"):
        raise ValueError(f"{quoted(text)} is not a color; give six hexadecimal digits, as #ff0000")
    if _INTEGER.fullmatch(text):
        if len(text) > _LONGEST_NUMBER or abs(int(text)) >= _MAX_INTEGER:
            raise ValueError(f"{quoted(text)} is too large; give a smaller integer")
        return [int(text)]
    if found := _RANGE.fullmatch(text):
        low, high = (int(one[:_LONGEST_NUMBER]) for one in found.groups())
        if len(text) > 2 * _LONGEST_NUMBER or not low <= high < low + _MAX_RANGE or abs(low) >= _MAX_INTEGER:
            raise ValueError(
                f"{quoted(text)} is not a range; give the smaller number first and at most {_MAX_RANGE} values"
            )
        return list(range(low, high + 1))
    return [text]


@dataclass(frozen=True)
class Definition:
    """Classes as a user gives them.

    Attributes:
        names: the classes in the order given.
        values: the values of each class; None if only names were given.
        void: values without a class.
        others: as in :class:`ClassCodes`.
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[Value, ...], ...] | None = None
    void: tuple[Value, ...] = ()
    others: int | None = None

    def codes(self) -> ClassCodes:
        """Return the codes if values were given."""
        if not self.names:
            raise ValueError("no classes; give at least one, as ground=1")
        if self.values is None:
            named = shortened(", ".join(self.names), 200)
            raise ValueError(f"no values for the classes {named}; give them as {self.names[0]}=1")
        used = {value for given in (*self.values, self.void) for value in given}
        values = list(self.values)
        for at, given in enumerate(values):
            if not given and at == self.others:
                values[at] = (_unused(used),)
        values, void = _alike(values, self.void)
        return ClassCodes(self.names, tuple(values), void, self.others)


def _unused(used: set[Value]) -> Value:
    """Return a value to write for the class of all others."""
    if any(isinstance(value, tuple) for value in used):
        return next(color for color in map(unpacked, range(1 << 24)) if color not in used)
    if any(isinstance(value, str) for value in used):
        return next(word for word in ("other", *(f"other{n}" for n in range(len(used) + 1))) if word not in used)
    return next(number for number in range(len(used) + 1) if number not in used)


def _alike(
    values: list[tuple[Value, ...]], void: tuple[Value, ...]
) -> tuple[list[tuple[Value, ...]], tuple[Value, ...]]:
    """Make all values colors or words if some are."""
    kinds = {type(value) for given in (*values, void) for value in given}
    if tuple in kinds and str not in kinds and int in kinds:

        def color(value: Value) -> Color:
            return value if isinstance(value, tuple) else gray(value)

        return [tuple(map(color, given)) for given in values], tuple(map(color, void))
    if str in kinds and int in kinds and tuple not in kinds:
        return [tuple(map(str, given)) for given in values], tuple(map(str, void))
    return values, void


def parse_classes(text: str | None = None, *, file: AnyPath | None = None, void: str | None = None) -> Definition:
    """Return the classes of a user's definition; the module describes how it is written.

    Args:
        text: ``background,horse``, or ``background=0 horse=1``.
        file: a file with one ``name=values`` per line; lines that begin with ``#`` are comments.
        void: values without a class.
    """
    if text is not None and file is not None and "=" in text:
        raise ValueError("the values of classes are given twice, in the option and in a file; give them once")
    words = _words(text) if text is not None else []
    lines: list[tuple[str, int | None]] = [(word, None) for word in words]
    names_only = lines if file is not None else []
    if file is not None:
        content = read_text(file).decode("utf-8").split("\n")
        lines = [
            (word, number)
            for number, line in enumerate(content, start=1)
            if line.strip() and not line.lstrip().startswith("#")
            for word in _words(_with_equals(line))
        ]
    with_values = any("=" in word for word, _ in lines)
    entries: list[tuple[str, list[str], int | None]] = []
    for word, number in lines:
        name, equals, values = word.partition("=")
        if equals or not entries or not with_values:
            entries.append((name, [values] if values else [], number))
        else:
            entries[-1][1].append(word)
    definition = _definition(entries, file, void)
    if names_only:
        order = [word for word, _ in names_only]
        if set(order) - set(definition.names):
            missing = next(name for name in order if name not in definition.names)
            raise problem(
                str(file), None, f"no class {missing!r}; add a line {missing}=VALUES, or drop it from the classes"
            )
        definition = _chosen(definition, order)
    return definition


def _words(text: str) -> list[str]:
    joined = "=".join(part.strip() for part in text.split("="))
    return joined.replace(",", " ").replace(";", " ").split()


def _with_equals(line: str) -> str:
    """Allow ``name value value`` in files."""
    if "=" in line:
        return line
    name, _, values = line.strip().replace("\t", " ").partition(" ")
    return f"{name}={values.strip()}" if values.strip() else name


def _definition(entries: list[tuple[str, list[str], int | None]], file: AnyPath | None, void: str | None) -> Definition:
    names: list[str] = []
    values: list[tuple[Value, ...]] = []
    nothing: list[Value] = []
    others: int | None = None
    for name, words, number in entries:
        try:
            found: list[Value] = [value for word in words if word != _OTHERS for value in parse_values(word)]
            if name == _VOID_NAME:
                nothing += found
            else:
                _check_name(name)
                names.append(name)
                values.append(tuple(found))
            if _OTHERS in words:
                if others is not None:
                    raise ValueError("'*' is given to two classes; give it to one")
                others = VOID if name == _VOID_NAME else len(names) - 1
        except ValueError as error:
            if file is not None:
                raise problem(file, number, str(error)) from None
            raise
    if void is not None:
        for word in _words(void):
            if word == _OTHERS:
                if others is not None:
                    raise ValueError("'*' is given to a class and to void; give it to one")
                others = VOID
            else:
                nothing += parse_values(word)
    given = any(values) or others not in (None, VOID)
    return Definition(tuple(names), tuple(values) if given else None, tuple(nothing), others)


def _chosen(definition: Definition, order: Sequence[str]) -> Definition:
    """Return the classes in another order; those left out are void."""
    assert definition.values is not None
    at = [definition.names.index(name) for name in order]
    dropped = [given for n, given in enumerate(definition.values) if n not in at]
    others = definition.others
    if others is not None and others >= 0:
        others = at.index(others) if others in at else VOID
    return Definition(
        tuple(order),
        tuple(definition.values[n] for n in at),
        (*definition.void, *(value for given in dropped for value in given)),
        others,
    )


def learned_codes(found: Sequence[Value], definition: Definition, *, default_names: Sequence[str] = ()) -> ClassCodes:
    """Return the codes for values found in training data.

    Args:
        found: the distinct values in the order of the classes.
        definition: what the user said; names alone are given to the values in this order.
        default_names: names if the user gave none and their number is right.
    """
    if definition.values is not None:
        return definition.codes()
    values = [value for value in found if value not in definition.void]
    names = definition.names
    spelled = ", ".join(map(_brief, values[:12])) + (", ..." if len(values) > 12 else "")
    if names and set(values) <= set(names):
        # The labels are the names themselves: classes that do not occur here may occur elsewhere.
        return ClassCodes(names, tuple((name,) for name in names), definition.void, definition.others)
    if names and len(names) != len(values):
        listed = shortened(", ".join(names), 200)
        raise ValueError(
            f"{len(values)} values ({spelled}) and {len(names)} classes ({listed}); say which values stand "
            f"for which class, as {names[0]}={_brief(values[0]) if values else 1}, and which for none, as void=255"
        )
    if not values:
        raise ValueError("no values besides void ones; label some pixels or points")
    if len(values) > MAX_CLASSES:
        raise ValueError(
            f"{len(values)} different values ({spelled}), too many for classes; say which stand for which class"
        )
    if not names:
        names = tuple(default_names) if len(default_names) == len(values) else tuple(map(_name_of, values))
    return ClassCodes(names, tuple((value,) for value in values), definition.void, definition.others)


def _name_of(value: Value) -> str:
    """Return a name for the class of a value."""
    if isinstance(value, str):
        return re.sub(r"[\s=,*#]+", "_", value) or "_"
    return shown(value).replace("#", "color_")
