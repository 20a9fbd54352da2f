"""Texts in any script as names: ASCII letters, digits and underscores, a letter first."""

from __future__ import annotations

import re
import unicodedata

_LETTERS = {
    "абвгдезийклмнопрстуфыэ": "abvgdeziyklmnoprstufye",
    "іїєґўјѕ": "iiegujz",
    "αβγδεζηικλμνξοπρστυφω": "avgdeziiklmnxoprstyfo",
}
_GROUPS = {
    "ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": "", "ю": "yu",
    "я": "ya", "ё": "yo", "θ": "th", "χ": "ch", "ψ": "ps", "ς": "s",
    "ß": "ss", "æ": "ae", "ø": "o", "đ": "d", "ł": "l", "ð": "d", "þ": "th", "ı": "i",
}  # fmt: skip
_LATIN = {
    letter: latin for script, own in _LETTERS.items() for letter, latin in zip(script, own, strict=True)
} | _GROUPS
"""Cyrillic, Greek, and Latin letters that are no letter with an accent; lower case."""


def safe_name(text: str, prefix: str) -> str:
    """Return a text as a name; just the prefix for one in a script that is not transcribed."""
    safe = re.sub(r"[^A-Za-z0-9]+", "_", _transcribed(text)).strip("_")
    return safe if safe[:1].isalpha() else f"{prefix}{safe}"


def _transcribed(text: str) -> str:
    """Return a text in Latin letters without accents, as far as its script is known."""
    return "".join(map(_latin, unicodedata.normalize("NFC", text)))


def _latin(letter: str) -> str:
    base = unicodedata.normalize("NFKD", letter)[0]
    latin = _LATIN.get(letter.lower(), _LATIN.get(base.lower()))
    if latin is None:
        return base
    return latin.capitalize() if base != base.lower() else latin
