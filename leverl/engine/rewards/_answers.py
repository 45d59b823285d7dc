"""Finding the final answer of a response and comparing it: pure text, no mathematics package.

Strict on purpose. A policy that is rewarded for a wrong answer learns to give it, while one that is not
rewarded for an odd wording learns the usual one.
"""

import re
from collections.abc import Callable

from leverl.engine.rewards._numbers import same_number

LONGEST_ANSWER = 1000

_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_BOX = re.compile(r"\\f?boxed\s*\{")
_HASHES = re.compile(r"####[ \t]*(.+)")
_STATEMENT = re.compile(r"\banswer[ \t]*(?:is\b|are\b|=|:)[ \t]*:?\s*(.+)", re.IGNORECASE)
_BOLD = re.compile(r"(?<![\w)])\*\*|\*\*(?![\w(])")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_CLAUSE_END = re.compile(r"[.;,!?]\s|\n|\b(?:but|so|hence|therefore|thus)\b", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|wrong|incorrect|false|neither|nor|except|unlike|instead of|rather than)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)

_UNWRAP = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_DELIMITER = re.compile(
    r"(?<!\\)\\[()\[\]]|\\?\$|\\[,!;:]|\\(?:left|right|displaystyle)(?![A-Za-z])|\\(?=\s)"
)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[^\W\d_]{3,}|\b(?:am|by|if|is|it|no|of|ok|on|pm|to|up|we)\b", re.IGNORECASE)
_FUNCTIONS = re.compile(
    r"(?:arc)?(?:sin|cos|tan)h?|cot|sec|csc|log|exp|sqrt|mod|gcd|lcm|max|min|inf|and", re.IGNORECASE
)
_UNEQUAL = re.compile(r"\\(?:neq?|not|approx|sim|simeq|cong)(?![A-Za-z])|[≠≈]|!=|~")
_CHOICE = re.compile(r"\(?([A-J])\)?\.?")
_CHOICE_GIVEN = re.compile(r"\(([A-Ja-j])\)\.?(?:\s.*)?|([A-Ja-j])\.?|([A-J])(?:[.:)]\s.*|\))", re.DOTALL)


def final_answer(response: str) -> str | None:
    """The answer that a response commits itself to, or None: nothing found, or the answer is negated."""
    tags = _TAG.findall(response)
    text = _BOLD.sub("", tags[-1] if tags else response)
    boxes = list(_BOX.finditer(text))
    if boxes:
        return _unless_negated(text, boxes[-1].start(), _braced(text, boxes[-1].end()))
    for marker in (_HASHES, _STATEMENT):
        found = list(marker.finditer(text))
        if found:
            return _unless_negated(text, found[-1].start(), _first_sentence(found[-1].group(1)))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _first_sentence(lines[-1]) if lines else None


def same_answer(answer: str, truth: str, equal: Callable[[str, str], bool]) -> bool:
    """Whether `answer` means `truth`; `equal(answer, truth)` compares two LaTeX expressions."""
    given, wanted = _plain(answer), _plain(truth)
    if not given or not wanted:
        return False
    if given == wanted:
        return True
    if len(given) > LONGEST_ANSWER:
        return False
    choice = _CHOICE.fullmatch(wanted)
    if choice:
        match = _CHOICE_GIVEN.fullmatch(given)
        return match is not None and choice[1] in [group.upper() for group in match.groups() if group]
    by_number = same_number(given, wanted)
    if by_number is not None:
        return by_number
    if _has_words(wanted):
        return _as_text(given) == _as_text(wanted)
    return _is_one_expression(given, wanted) and equal(given, wanted)


def _unless_negated(text: str, start: int, answer: str | None) -> str | None:
    """`answer`, unless the clause that leads up to `start` denies it ("so it is not \\boxed{5}")."""
    before = text[max(0, start - LONGEST_ANSWER) : start]
    ends = list(_CLAUSE_END.finditer(before))
    clause = before[ends[-1].end() :] if ends else before
    return None if _NEGATION.search(clause) else answer


def _braced(text: str, start: int) -> str | None:
    """What stands between an open brace that ends at `start` and its partner."""
    depth = 1
    for at in range(start, len(text)):
        escaped = text[at - 1] == "\\"
        depth += (text[at] == "{" and not escaped) - (text[at] == "}" and not escaped)
        if depth == 0:
            return text[start:at]
    return None


def _first_sentence(line: str) -> str | None:
    """The first sentence, unless it is a question or the rest of the line takes it back."""
    end = _SENTENCE_END.search(line)
    if end is None:
        return line.strip()
    rest = line[end.end() :]
    return None if end[0] == "?" or _NEGATION.search(rest) else line[: end.start()].strip()


def _plain(text: str) -> str:
    """Without LaTeX delimiters, spacing, text wrappers and the signs that people type instead of - and ,."""
    text = _UNWRAP.sub(r" \1 ", text.replace("{,}", ",").replace("−", "-"))
    text = _DELIMITER.sub("", text)
    return text.strip().rstrip(".,").strip()


def _has_words(text: str) -> bool:
    words = _WORD.findall(_COMMAND.sub(" ", text))
    return any(not _FUNCTIONS.fullmatch(word) for word in words)


def _as_text(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .,;:!\"'`")


def _is_one_expression(given: str, wanted: str) -> bool:
    """Not prose, not a denial, not several lines of which a parser would pick the one that fits."""
    several = [mark for mark in ("\n", "\\\\") if mark in given and mark not in wanted]
    denied = _UNEQUAL.search(given) is not None and _UNEQUAL.search(wanted) is None
    return not (_has_words(given) or several or denied)
