"""Where in the user's code something happened: neither in this package nor in a library."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType

from sglite.language.ir import Place

_PACKAGE = __name__.partition(".")[0]
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def users_place() -> Place:
    """The user's line that led here."""
    found = None
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        if not _is_ours(frame):
            found = found or Place(frame.f_code.co_filename, line)
            if not _is_of_a_library(frame.f_code):
                return Place(frame.f_code.co_filename, line)
    return found or Place(__file__, 0)


_places: dict[tuple[CodeType, int], Place] = {}
_MOST_PLACES = 4096


def place_of_caller() -> Place:
    """The line that called the function that calls this: quick, for the methods of a state."""
    frame = sys._getframe(2)
    key = (frame.f_code, frame.f_lineno)
    place = _places.get(key)
    if place is None:
        if len(_places) >= _MOST_PLACES:
            _places.clear()
        place = _places[key] = Place(frame.f_code.co_filename, frame.f_lineno)
    return place


def users_line(trace: TracebackType | None) -> Place | None:
    """The user's innermost line of a traceback before it entered this package."""
    place = None
    library = None
    for frame, line in _until_ours(traceback.walk_tb(trace)):
        library = Place(frame.f_code.co_filename, line)
        if not _is_of_a_library(frame.f_code):
            place = library
    return place or library


def _until_ours(frames: Iterable[tuple[FrameType, int]]) -> Iterable[tuple[FrameType, int]]:
    left = False
    for frame, line in frames:
        if not _is_ours(frame):
            left = True
            yield frame, line
        elif left:
            return


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE


def _is_of_a_library(code: CodeType) -> bool:
    return code.co_filename.startswith(_LIBRARIES)
