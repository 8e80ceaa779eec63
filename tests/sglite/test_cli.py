"""The command line."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from sglite.cli import main


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_version() -> None:
    assert _run("--version") == (0, f"sglite {version('sglite')}\n", "")


def test_help_names_the_commands() -> None:
    code, out, _ = _run("--help")
    assert code == 0
    assert "pull" in out
    assert "inspect" in out


def test_the_installed_command_says_what_is_wrong() -> None:
    command = Path(sys.executable).with_name("sglite")
    done = subprocess.run([command, "pull", "smolm2"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Error: there is no model 'smolm2' (did you mean 'smollm2'?)")
    assert "Traceback" not in done.stderr


def test_help_says_everything_in_whole_lines() -> None:
    assert "..." not in _run("--help")[1].replace("[ARGS]...", "")
    _, out, _ = _run("pull", "--help")
    assert "smollm2         98 MB, Apache-2.0\n" in out
    assert "gemma3-270m    253 MB, Gemma Terms of Use\n" in out
    assert "SGLITE_CACHE" in out


def test_the_module_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sglite", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: sglite [OPTIONS]")
    assert "pull" in done.stdout


@pytest.mark.model
def test_pull_prints_the_path(smollm2_path: Path) -> None:
    assert _run("pull", "smollm2") == (0, f"{smollm2_path}\n", "")


@pytest.mark.model
def test_inspect_a_name(smollm2_path: Path) -> None:
    code, out, err = _run("inspect", "smollm2")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == f"{smollm2_path} GGUF version 3 98,362,432 bytes"
    assert "general.architecture 'llama'" in lines
    assert "llama.context_length 8,192" in lines
    assert any(line.startswith("tokenizer.ggml.tokens ['<|endoftext|>'") for line in lines)
    assert any(line.endswith("(49152 of them)]") for line in lines)
    packed = "8-bit, scale per 32, 30,081,024 bytes, 8.50 bits a weight"
    assert f"token_embd.weight Q8_0 49152 x 576 {packed}" in lines
    packed = "4-bit, scale and min per 32, 552,960 bytes, 5.00 bits a weight"
    assert f"blk.*.ffn_down.weight Q4_1 576 x 1536 30 times {packed}" in lines
    assert "output_norm.weight F32 576 f32, 2,304 bytes" in lines
    assert any(line.startswith("Q4_1 210 tensors 106,168,320 weights") for line in lines)
    assert lines[-1].startswith("all 272 tensors 134,515,008 weights")


def test_inspect_does_not_pass_on_control_characters(tmp_path: Path) -> None:
    key, text = b"a\x1b[31m", b"\x1b[2Jgone"
    head = b"GGUF\3\0\0\0" + bytes(8) + (1).to_bytes(8, "little")
    pair = len(key).to_bytes(8, "little") + key + (8).to_bytes(4, "little")
    path = tmp_path / "hostile.gguf"
    path.write_bytes(head + pair + len(text).to_bytes(8, "little") + text)
    code, out, _ = _run("inspect", str(path))
    assert code == 0
    assert "\x1b" not in out
    assert r"'\x1b[2Jgone'" in out


def test_inspect_a_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no model")
    code, _, err = _run("inspect", str(path))
    assert code == 1
    assert err == f"Error: {path}: not a GGUF file: it begins with b'no m' (byte 0)\n"


def test_the_command_line_loads_no_engine() -> None:
    code = (
        "import sys, sglite.cli; print(sorted({'numpy', 'tokenizers', 'torch'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
