"""`python -m sglite`, for where the command itself is not on the path."""

from sglite.cli import main

if __name__ == "__main__":
    main(prog_name="sglite")
