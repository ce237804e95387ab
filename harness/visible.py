"""Text from outside as it is shown: nothing in it moves a cursor or turns the text around, and it is not too much.

And how a count or a figure is said.
"""

import json
import math
import re
import reprlib
from collections.abc import Iterable
from typing import Any

# control characters, lone surrogates, and marks that turn the direction of all text after them
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
    r"|\r(?!\n)"
)
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_GITHUB = re.compile(r"(?m)^([^\S\n]*):(?=:)|##(?=\[)")
SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|(?:^|_)PASS(?:_|$)|CREDENTIAL|AUTH|COOKIE|API_?KEY|(?:^|_)KEYS?(?:_|$)"
)
"""What names a secret, in capitals."""
HIDDEN = "(set)"
"""In place of one."""
_HARMLESS = re.compile(
    r"TOKENIZ|TOKENS|TOKEN_(?:ID|COUNT|DIM|LEN|EMBED|TYPE|LIMIT|BUDGET)|(?:PAD|EOS|BOS|UNK|MASK|CLS|SEP)_TOKEN"
    r"|AUTHOR(?!I)|KEY_(?:DIM|SIZE|VALUE)|(?:SORT|RNG|NUM|N)_KEYS?"
)
"""Parts of names that only look as if they named one."""
_VARIABLE = re.compile(
    r"(?s)^((?:-+\w+=)?env\.(\w+)=)(.*)$|(?<![\w.-])(([A-Z][A-Z0-9_]*)=)('[^']*'|\"[^\"]*\"|[^\s,'\"]+)"
)
_ARGUMENT = re.compile(r"""(?<!\S)(--?([A-Za-z][\w-]*)(?:=|\s+(?!-)))((?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+)""")
_LONGEST_WORD = 300
"""Characters; a path may be this long, and nothing else that somebody means."""
_LONGEST_LINE = 4000
_LONGEST_NUMBER = 8192
"""Bits; a number of the hexadecimal digits of a spec may have more than Python turns into decimal ones."""


def printable(text: str) -> str:
    """Without the characters that neither HTML nor a terminal can show, or that would disturb the text around."""
    # nothing that is replaced is printable: most texts are seen to be harmless in a tenth of the time
    return text if text.isprintable() else _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def printable_in_colour(text: str) -> str:
    """`printable`, but sequences that set colours stay: for a terminal that heeds them."""
    parts = _COLOUR.split(text)
    return "".join(part if number % 2 else printable(part) for number, part in enumerate(parts))


def one_line(text: str) -> str:
    """`printable` in one line: white space of any kind is one space."""
    return " ".join(printable(text).split())


def message(text: str) -> str:
    """`one_line` for a person to read: a word of thousands of characters is not echoed whole, nor a line of them."""
    words = " ".join(_cut(word, _LONGEST_WORD) for word in one_line(text).split(" "))
    return _cut(words, _LONGEST_LINE)


def no_command(text: str) -> str:
    """`text` without what GitHub's runner takes for a command in a log: a line that begins with `::`, and `##[`
    anywhere."""
    return _GITHUB.sub(lambda found: "## " if found[1] is None else f"{found[1]}: ", text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 4) :]}"


def names_secret(name: str) -> bool:
    """Whether what has this name, a variable or an argument, could be a secret."""
    capitals = name.lstrip("-").replace("-", "_").upper()
    return SECRET_NAME.search(_HARMLESS.sub("", capitals)) is not None


def without_secrets(text: str) -> str:
    """Arguments of a command, or one of them, without what could be a secret by its name: `--api-key X`, `HF_TOKEN=X`,
    `env.HF_TOKEN=X`."""
    for pattern in (_VARIABLE, _ARGUMENT):
        text = pattern.sub(_hidden, text)
    return text


def words_without_secrets(words: Iterable[str]) -> list[str]:
    """The words of a command line without what could be a secret: of two words, too, `--api-key` and `X`."""
    shown, before = list[str](), ""
    for word in words:
        named = before.startswith("-") and "=" not in before and names_secret(before)
        shown.append(HIDDEN if named and not word.startswith("-") else without_secrets(word))
        before = word
    return shown


def _hidden(found: "re.Match[str]") -> str:
    before, name, _ = (group for group in found.groups() if group is not None)
    return before + HIDDEN if names_secret(name) else found[0]


def plural(count: int, noun: str) -> str:
    """`1 trial`, `3 trials`, `3 processes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits, thousands separated, never in exponent form when readable."""
    if value == 0:
        return "0"
    if not 1e-6 <= abs(value) < 1e12:
        return f"{value:.{digits - 1}e}"
    # rounded first: 99.96 has its first digit in the hundreds once it is 100
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, decimals)}f}"


def percent(setting: float) -> str:
    """A setting, in as many digits as it has: `3 %`, `0.5 %`."""
    return f"{100 * setting:.6g} %"


class _Given(reprlib.Repr):
    """As Python writes it, but for a number of thousands of digits, which Python refuses to write."""

    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > _LONGEST_NUMBER:
            return f"a number of about {x.bit_length() * 3 // 10:,} digits"
        return super().repr_int(x, level)


_GIVEN = _Given()
_GIVEN.maxlevel = 4
_GIVEN.maxstring = _GIVEN.maxother = 100
_GIVEN.maxlist = _GIVEN.maxdict = 10


def quoted(value: Any) -> str:
    """What was given for a key, as Python writes it: in one line, and of a large or deep value its beginning."""
    return one_line(_GIVEN.repr(value))


def json_without_commands(text: str) -> str:
    """JSON that says the same, in which `no_command` finds nothing."""
    return text.replace("##[", "#\\u0023[")


def json_text(value: Any, indent: int = 2, *, allow_nan: bool = True) -> str:
    """`value` as JSON that loses nothing and can be printed: what `printable` or `no_command` would replace is escaped.
    Ends a line."""
    text = json_without_commands(json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=allow_nan))
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
