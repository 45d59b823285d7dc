"""Constraints over levers, such as `batch_size % group_size == 0`: parsed once, evaluated many times.

Only numbers, names, + - * / // %, comparisons and and/or/not are understood; nothing is ever executed.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from leverl.errors import ConfigError

LONGEST: Final = 500
LARGEST: Final = 1e100

_ARITHMETIC: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISON: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ALLOWED: Final = "Allowed: numbers, levers, + - * / // %, comparisons, and, or, not, parentheses."


@dataclass(frozen=True)
class Expression:
    """A condition on levers. `names` are the words it uses, as they were written."""

    text: str
    tree: ast.expr
    names: frozenset[str]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition is true for `values` (name → number). Division by zero makes it false.

        Raises:
            ConfigError: a value is no number.
        """
        for name in self.names:
            found = values[name]
            if not isinstance(found, int | float):
                raise ConfigError(f"constraint '{self.text}': {name} = {found!r} is no number to compare.")
        try:
            return bool(_evaluate(self.tree, values))
        except (ZeroDivisionError, OverflowError):
            return False


def parse(text: str) -> Expression:
    """Parse a constraint.

    Raises:
        ConfigError: not an expression, not a condition, or something outside the whitelist; quotes it.
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ConfigError(
            f"constraint {str(text)[:60]!r} must be text of at most {LONGEST} characters. {_ALLOWED}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"constraint '{text}' is no expression ({error}). {_ALLOWED}") from error
    _check(tree, text)
    if not _is_condition(tree):
        raise ConfigError(f"constraint '{text}' is no condition: it compares nothing (for example: <= 4).")
    names = frozenset(_name(node) for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute))
    whole = frozenset(name for name in names if not any(other.startswith(f"{name}.") for other in names))
    return Expression(text, tree, whole)


def _check(node: ast.AST, text: str) -> None:
    """Refuse everything that is not on the whitelist."""
    children: list[ast.AST] = []
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            _check_number(value, text)
        case ast.Name():
            pass
        case ast.Attribute():
            _check_path(node, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            children = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            children = [operand]
        case ast.BoolOp(values=values):
            children = list(values)
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(
            type(op) in _COMPARISON for op in ops
        ):
            children = [left, *comparators]
        case _:
            part = ast.get_source_segment(text.strip(), node) if hasattr(node, "lineno") else None
            raise ConfigError(
                f"constraint '{text}': '{part or type(node).__name__}' is not allowed. {_ALLOWED}"
            )
    for child in children:
        _check(child, text)


def _check_number(value: float, text: str) -> None:
    if not abs(value) <= LARGEST:
        raise ConfigError(f"constraint '{text}' holds a number that is too large.")


def _check_path(node: ast.Attribute, text: str) -> None:
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    if not isinstance(inner, ast.Name):
        raise ConfigError(f"constraint '{text}': '{ast.unparse(node)}' is not allowed. {_ALLOWED}")


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare():
            return True
        case ast.BoolOp(values=values):
            return all(_is_condition(value) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_condition(operand)
    return False


def _name(node: ast.AST) -> str:
    return f"{_name(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute():
            return values[_name(node)]
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.UnaryOp(op=op, operand=operand):
            value = _evaluate(operand, values)
            return (not value) if isinstance(op, ast.Not) else -value if isinstance(op, ast.USub) else value
        case ast.BoolOp(op=op, values=parts):
            decide = all if isinstance(op, ast.And) else any
            return decide(_evaluate(part, values) for part in parts)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_evaluate(side, values) for side in (left, *comparators)]
            pairs = zip(ops, sides[:-1], sides[1:], strict=True)
            return all(_COMPARISON[type(op)](a, b) for op, a, b in pairs)
    raise ConfigError(f"'{ast.unparse(node)}' cannot be evaluated.")  # unreachable: `parse` has checked
