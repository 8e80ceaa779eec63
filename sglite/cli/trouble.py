"""What the command line says when something goes wrong: one line, and the user's own below it."""

from __future__ import annotations

import linecache

from sglite.language.places import users_line


def told(error: BaseException) -> str:
    """The message of an error of sglite, with the line of the program that it names."""
    return str(error) + _source(getattr(error, "filename", None), getattr(error, "line", None))


def told_of_loading(error: BaseException, file: str) -> str:
    """What an exception says that came out of loading `file`, and where."""
    if isinstance(error, SyntaxError):
        place = f" ({error.filename}:{error.lineno})" if error.filename else ""
        return f"{file} is no Python: {error.msg}{place}{_source(error.filename, error.lineno)}"
    if isinstance(error, SystemExit):
        said = (
            "it ended the process (sys.exit) while it was loaded; put what is to happen only when "
            'it is run by itself under if __name__ == "__main__":'
        )
    else:
        said = f"{type(error).__name__}: {error}"
    if "attempted relative import" in said:
        said += "; name it as a module: package.module:function"
    found = users_line(error.__traceback__)
    if found is None:
        return f"{file} could not be loaded: {said}"
    where = f" ({found.filename}:{found.line})"
    return f"{file} could not be loaded: {said}{where}{_source(found.filename, found.line)}"


def _source(filename: str | None, line: int | None) -> str:
    text = linecache.getline(filename, line).strip() if filename and line else ""
    return f"\n    {text}" if text else ""
