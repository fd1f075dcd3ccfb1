"""Arguments of the wrong kind are refused in one line at the public functions, by what their annotations say."""

import inspect
import math
from collections.abc import Callable, Collection
from functools import cache, wraps
from numbers import Integral
from types import NoneType, UnionType
from typing import Any, ParamSpec, SupportsFloat, TypeVar, Union, get_args, get_origin, get_type_hints

from brittle.common.errors import require

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}
LONGEST = 100  # characters of a value in a message


def check_kinds(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Refuse arguments that are not what the function's annotations say; NaN is no number."""
    signature = inspect.signature(function)

    @wraps(function)
    def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        hints = _hints(function)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            require_kind(name, value, hints.get(name, Any))
        return function(*args, **kwargs)

    return wrapped


def require_kind(name: str, value: object, hint: Any) -> None:
    """Refuse a value that is none of a type hint's alternatives."""
    kinds = _alternatives(hint)
    if not any(_is_a(value, kind) for kind in kinds):
        words = " or ".join(dict.fromkeys(map(_words, kinds)))
        require(False, f"{name} is {_shown(value)}; it must be {words}")


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError:  # names that only a type checker imports
        return {name: hint for name, hint in inspect.get_annotations(function).items() if not isinstance(hint, str)}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, TypeVar):
        hint = hint.__bound__ or hint.__constraints__ or Any
        return hint if isinstance(hint, tuple) else _alternatives(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for each in get_args(hint) for kind in _alternatives(each))
    return (hint,)


def _is_a(value: object, kind: Any) -> bool:
    """Whether a value may be of a kind; True for kinds that cannot be looked at."""
    if kind is float:
        return _is_number(value)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is bool:
        return type(value).__name__ in ("bool", "bool_")  # NumPy's too
    origin = get_origin(kind)
    if origin is tuple:
        return isinstance(value, tuple | list) and _holds(value, get_args(kind))
    if isinstance(origin, type) and issubclass(origin, Callable):  # type: ignore[arg-type]
        return callable(value)
    if isinstance(origin, type):
        return isinstance(value, origin) and not isinstance(value, str)
    try:
        return not isinstance(kind, type) or isinstance(value, kind)
    except TypeError:  # a protocol that says nothing at run time
        return True


def _holds(values: Collection[object], kinds: tuple[Any, ...]) -> bool:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(values)
    parts = zip(values, kinds, strict=False)
    return len(values) == len(kinds) and all(
        any(_is_a(one, each) for each in _alternatives(kind)) for one, kind in parts
    )


def _is_number(value: object) -> bool:
    """One real number, infinities among them."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat) or getattr(value, "shape", ()) != ():
        return False
    try:
        return not math.isnan(value)
    except (TypeError, ValueError, OverflowError):
        return False


def _words(kind: Any) -> str:
    if kind in WORDS:
        return WORDS[kind]
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        several = len(inner) == 2 and inner[1] is Ellipsis
        return f"a tuple of {'such values' if several else f'{len(inner)} values'}"
    name = getattr(get_origin(kind) or kind, "__name__", str(kind))
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(value: object) -> str:
    if hasattr(value, "shape"):
        return f"a {type(value).__name__} of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
